"""The reply to `benchmark`: a ratio with its interval and what stands behind it, or why none is.

On the simulator there are estimates only, and nothing is called faster.
"""

from collections.abc import Iterator

from kopt.kernels.bench_result import (
    BenchResult,
    Comparison,
    DeviceState,
    Latency,
    RejectedBaseline,
)
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.server.views.bench_words import verdict_words
from kopt.tools.facts.check_facts import wrong_facts
from kopt.tools.facts.compile_facts import build_facts, function_rows, remark_facts
from kopt.tools.facts.findings import advice, diagnostic_facts, head
from kopt.tools.facts.fitting import Detail, Facts, Listing
from kopt.tools.facts.wording import Quoted

from .next_steps import mend_and_call, same_call

MEASURED_ON = "speedup = baseline time / candidate time, medians over pairs of replays"
ESTIMATED_ON = "nothing was timed on sim: a ratio of estimates orders candidates and proves nothing"


def bench_facts(result: BenchResult, detail: Detail) -> Facts:
    """Return the facts of a benchmark."""
    facts = head(result, result.check.values_at())
    if result.verdict is not None:
        main = result.comparisons[0] if result.comparisons else None
        facts["verdict"] = result.verdict.value
        facts["answer"] = verdict_words(result.verdict, main)
    facts["device"] = result.device
    if result.gpu is not None:
        facts["gpu"] = result.gpu.name
    facts |= _why_not_timed(result)
    facts |= advice(result)
    facts |= _measured_facts(result)
    facts |= _estimated_facts(result)
    if result.memory_floor_us is not None:
        facts["computed"] = {"memory_floor_us": result.memory_floor_us}
    facts |= _doubts(result)
    if detail == "full":
        facts |= _full_facts(result)
    return facts


def bench_next(result: BenchResult) -> str:
    """Return what to do after this result."""
    device = f"device={result.device}"
    if result.status is not Status.PASSED:
        return mend_and_call("check_correctness", result, device)
    step = f"beam_step with kernel={result.kernel}"
    match result.verdict:
        case Verdict.FASTER:
            full = same_call("check_correctness", result, device, "level=full")
            return f"Call {full} to make sure of it, or {step} to go on from it."
        case Verdict.IMPOSSIBLE:
            return f"Find the work that timed calls skip, then call {same_call('profile', result)}."
        case Verdict.ESTIMATED:
            profile = same_call("profile", result)
            return f"Call {profile} for what limits it; a GPU (device=cuda:0) would measure it."
        case _:
            profile = same_call("profile", result, device)
            return f"Call {profile} for what limits it, or {step} to search on."


def _why_not_timed(result: BenchResult) -> Facts:
    facts: Facts = {}
    if result.check.status is not Status.PASSED:
        facts = {"check": f"{result.check.status.value} at level {result.check.level}"}
        facts |= wrong_facts(result.check)
    # A failing check's diagnostics are the benchmark's own as well.
    if result.diagnostics and result.diagnostics != result.check.diagnostics:
        facts |= diagnostic_facts(result.diagnostics)
    return facts


def _measured_facts(result: BenchResult) -> Facts:
    if result.latency is None or result.latency.provenance is not Provenance.MEASURED:
        return {}
    measured: Facts = {"latency_us": _latency(result.latency)}
    comparisons = [one for one in result.comparisons if one.provenance is Provenance.MEASURED]
    rows = tuple(_comparison(one) for one in comparisons)
    if rows:
        measured["speedups"] = Listing(rows, most=4)
    for name in ("null_kernel_us", "warm_us", "achieved_gb_s", "copy_gb_s"):
        value = getattr(result, name)
        if value is not None:
            measured[name] = value
    return {"measured": measured, "how": MEASURED_ON}


def _estimated_facts(result: BenchResult) -> Facts:
    if result.latency is None or result.latency.provenance is not Provenance.ESTIMATED:
        return {}
    estimated: Facts = {"latency_us": result.latency.median_us}
    rows = tuple(_estimated_row(one) for one in result.comparisons)
    if rows:
        estimated["ratios"] = Listing(rows, most=4)
    return {"estimated": estimated, "how": ESTIMATED_ON}


def _latency(latency: Latency) -> Facts:
    facts: Facts = {"median": latency.median_us}
    if latency.spread is not None:
        facts["p10"], facts["p90"], facts["least"] = latency.spread
    return facts | {"replays": latency.replays, "l2": "cold"}


def _comparison(one: Comparison) -> Facts:
    row: Facts = {"baseline": one.baseline.label, "verdict": one.verdict.value}
    if one.speedup is not None and one.interval is not None:
        row |= {"speedup": one.speedup, "interval_95": list(one.interval)}
    row["pairs"] = one.pairs
    if one.dropped_pairs:
        row["dropped_pairs"] = one.dropped_pairs
    if one.baseline_latency is not None:
        row["baseline_us"] = one.baseline_latency.median_us
    if one.noise_floor is not None:
        row["noise_threshold_fraction"] = one.noise_floor.threshold
    if not one.like_for_like.holds:
        row["not_like_for_like"] = "; ".join(one.like_for_like.differences)
    return row


def _estimated_row(one: Comparison) -> Facts:
    row: Facts = {"baseline": one.baseline.label}
    if one.speedup is not None:
        row["ratio"] = one.speedup
    if one.baseline_latency is not None:
        row["baseline_us"] = one.baseline_latency.median_us
    return row


def _doubts(result: BenchResult) -> Facts:
    """Return what a reader must know before believing the times; nothing if nothing is odd."""
    doubts = list(_doubt_words(result))
    facts: Facts = {"doubts": Listing(tuple(doubts))} if doubts else {}
    if result.rejected:
        facts["not_timed"] = Listing(tuple(map(_rejected_words, result.rejected)), most=3)
    return facts | remark_facts(result.check.compiled)


def _doubt_words(result: BenchResult) -> Iterator[str]:
    if result.rotation is not None and not result.rotation.is_cold:
        yield "the buffer sets do not fill the L2 twice: times are warm"
    outputs = result.timed_outputs
    if outputs is not None and outputs.identical + outputs.within_gates < outputs.calls:
        wrong = outputs.calls - outputs.identical - outputs.within_gates
        yield f"{wrong} of {outputs.calls} timed calls have wrong outputs"
    state = result.state
    if state is not None and state.throttle:
        yield f"the GPU throttled: {', '.join(state.throttle)}"
    if state is not None and state.other_processes:
        yield f"{state.other_processes} other processes use the GPU"


def _rejected_words(path: RejectedBaseline) -> Quoted:
    pdl = "on" if path.pdl else "off"
    return Quoted(f"{path.name} (PDL {pdl}) {path.status}: {path.reason}")


def _full_facts(result: BenchResult) -> Facts:
    facts: Facts = {"elapsed": {"provenance": "measured", "seconds": result.elapsed_s}}
    if result.seed is not None:
        facts["seed"] = result.seed
    if result.rotation is not None:
        facts["buffers"] = {"provenance": "computed"} | result.rotation.model_dump(mode="json")
    if result.timed_outputs is not None:
        outputs = result.timed_outputs.model_dump(mode="json")
        facts["timed_outputs"] = {"provenance": "measured"} | outputs
    if result.state is not None:
        facts["clocks"] = _state(result.state)
    if result.gpu is not None:
        facts["gpu_facts"] = {"provenance": "computed"} | result.gpu.model_dump(mode="json")
    facts["baselines"] = Listing(tuple(map(_baseline, result.comparisons)))
    functions = tuple(function_rows(result.check.compiled))
    facts["compiled"] = {"provenance": "computed", "functions": Listing(functions)}
    return facts | build_facts(result.check.compiled)


def _state(state: DeviceState) -> Facts:
    return {"provenance": "measured"} | state.model_dump(mode="json", exclude_none=True)


def _baseline(one: Comparison) -> Facts:
    facts: Facts = {"baseline": one.baseline.label, "library": one.baseline.library or "none"}
    if one.baseline.kernels:
        facts["kernels"] = ", ".join(one.baseline.kernels)
    if one.noise_floor is not None:
        floor = one.noise_floor.model_dump(mode="json")
        facts["noise_floor"] = {"provenance": "measured"} | floor
    return facts
