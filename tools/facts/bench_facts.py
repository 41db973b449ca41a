"""A benchmark as facts, and as the sentences that people and models read alike.

The facts are a ratio with its interval and what stands behind it, or why none is. On the simulator
there are estimates only, and nothing is called faster.
"""

from collections.abc import Iterator

from kopt.kernels.bench_result import (
    BenchResult,
    Comparison,
    DeviceState,
    Latency,
    RejectedBaseline,
    Rotation,
)
from kopt.kernels.precision import PRECISIONS
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.tools.bench.disturbances import POWER_CAP
from kopt.tools.bench.verdict import is_below_copy

from .check_facts import wrong_facts
from .compile_facts import build_facts, function_rows, remark_facts
from .findings import advice, data_sheet_words, diagnostic_facts, head, target_of
from .fitting import Detail, Facts, Listing, given
from .known_facts import estimated_answer, known_facts
from .wording import Quoted

SPEEDUPS = "Speedups are measured: baseline time / candidate time, medians over pairs of replays."
ACCEPTED = (
    "Accepted: the receipt's range, widened by the noise, or on another GPU of the same model by a"
    " quarter of the gain, at most 3 %, where that is more."
)
"""What stands below a receipt's figures and new ones."""
MEASURED_ON = "speedup = baseline time / candidate time, medians over pairs of replays"
ESTIMATED_ON = "nothing was timed on sim: a ratio of estimates orders candidates and proves nothing"


QUICK_ONLY = "quick check only"
"""Said of `faster` without a full check."""


def answer_words(verdict: Verdict, result: BenchResult) -> str:
    """Return the verdict in words; of `faster` without a full check that, and what to call."""
    words = verdict_words(verdict, result.comparisons[0] if result.comparisons else None)
    if not result.is_unproven:
        return words
    return f"{words}; {QUICK_ONLY}: `kopt check --level full` decides"


def verdict_words(verdict: Verdict, main: Comparison | None) -> str:
    """Return one sentence: the ratio with its interval, and what stands behind it."""
    if verdict is Verdict.IMPOSSIBLE:
        return (
            "Impossible: shorter than the memory needs for the bytes. The time counts for nothing"
        )
    if main is None:
        return "Nothing to compare with: no baseline runs here"
    name = main.baseline.label
    if verdict is Verdict.ESTIMATED and main.speedup is not None:
        return f"ESTIMATED, NOT MEASURED: {main.speedup:.2f}x the speed of {name}"
    if main.speedup is None or main.interval is None:
        return f"Not compared with {name}: {verdict.value.replace('_', ' ')}"
    digits = ratio_digits(main.interval)
    ratio = f"{main.speedup:.{digits}f}x"
    evidence = f"{interval_words(main.interval)}{_evidence(main)}"
    match verdict:
        case Verdict.FASTER:
            return f"{ratio} faster than {name}, {evidence}"
        case Verdict.SLOWER:
            return f"Slower than {name}: {ratio} its speed, {evidence}"
        case Verdict.NOT_LIKE_FOR_LIKE:
            reasons = "; ".join(main.like_for_like.differences)
            return f"Not like for like with {name} ({reasons}): {ratio}, {evidence}"
        case _:
            return f"No difference from {name} that can be told: {ratio}, {evidence}"


def interval_words(interval: tuple[float, float]) -> str:
    """Return `95 % interval 1.20 to 1.22`."""
    digits = ratio_digits(interval)
    return f"95 % interval {interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def ratio_digits(interval: tuple[float, float]) -> int:
    """Return how many decimals of a ratio mean something: more would be noise."""
    return 2 if interval[1] - interval[0] > 0.019 else 3


def percent(fraction: float) -> str:
    """Return 0.0021 as `0.21 %`."""
    return f"{fraction * 100:.2g} %"


def _evidence(comparison: Comparison) -> str:
    floor = comparison.noise_floor
    noise = "" if floor is None else f", noise threshold {percent(floor.threshold)}"
    return f", {comparison.pairs} pairs{noise}"


def l2_words(rotation: Rotation) -> str:
    """Return whether times over these buffer sets are those of a cold L2."""
    return "cold" if rotation.is_cold else "warm: the buffer sets do not fill the L2 twice"


def rejected_words(path: RejectedBaseline) -> str:
    """Return which baseline was not timed, and why."""
    pdl = "on" if path.pdl else "off"
    return f"{path.name} (PDL {pdl}): {path.status.replace('_', ' ')}, {path.reason}"


def doubts(result: BenchResult) -> Iterator[str]:
    """Yield what a reader must know before believing the times; nothing if nothing is odd."""
    if result.rotation is not None and not result.rotation.is_cold:
        yield f"times are {l2_words(result.rotation)}"
    if (below := below_copy_words(result)) is not None:
        yield below
    races = result.race_check
    if races is not None and races.outcome == "unavailable":
        yield races.words
    outputs = result.timed_outputs
    if outputs is not None and outputs.identical + outputs.within_gates < outputs.calls:
        wrong = outputs.calls - outputs.identical - outputs.within_gates
        yield f"{wrong} of {outputs.calls} timed calls have wrong outputs"
    state = result.state
    if state is not None:
        yield from _throttle_words(state)
    if state is not None and state.other_processes:
        yield f"{state.other_processes} other processes use the GPU"


def _throttle_words(state: DeviceState) -> Iterator[str]:
    others = [reason for reason in state.throttle if reason != POWER_CAP]
    if others:
        yield f"the GPU throttled: {', '.join(others)}"
    if POWER_CAP in state.throttle:
        yield "the GPU was at its power limit: both sides of a pair ran at the clocks that it left"


def below_copy_words(result: BenchResult) -> str | None:
    """Return what is odd about a time clearly below that of a plain copy; None where it is not."""
    latency, copy = result.latency, result.plain_copy
    if latency is None or copy is None or not is_below_copy(latency, copy):
        return None
    ratio = latency.median_us / copy.latency.median_us
    return (
        f"it takes {ratio:.2f} of the time of a plain copy of as many bytes"
        f" ({copy.latency.median_us:.3f} us measured): is work left out, does data stay in a cache?"
    )


def bench_facts(result: BenchResult, detail: Detail) -> Facts:
    """Return the facts of a benchmark."""
    facts = head(result, result.check.values_at())
    if result.verdict is not None:
        is_estimate = result.verdict is Verdict.ESTIMATED
        answer = estimated_answer(result) if is_estimate else answer_words(result.verdict, result)
        facts |= {"verdict": result.verdict, "answer": answer}
        if result.verdict is Verdict.FASTER:
            facts |= {"checked": result.checked}
    facts |= {"device": result.device} | given(gpu=result.gpu and result.gpu.name)
    facts |= given(precision=precision_words(result))
    facts |= _why_not_timed(result) | advice(result) | _times(result)
    if result.best_known is not None:
        facts["best_known"] = known_facts(result.best_known)
    facts |= given(computed=given(memory_floor_us=result.memory_floor_us))
    not_timed = tuple(Quoted(rejected_words(path)) for path in result.rejected)
    facts |= given(doubts=Listing(tuple(doubts(result))), not_timed=Listing(not_timed, most=3))
    facts |= remark_facts(result.check.compiled)
    return facts | _full_facts(result) if detail == "full" else facts


def precision_words(result: BenchResult) -> str | None:
    """Return what the libraries' float32 products could do; None where they were IEEE."""
    if result.precision == "ieee":
        return None
    return f"{result.precision}: {PRECISIONS[result.precision]}"


def _why_not_timed(result: BenchResult) -> Facts:
    facts: Facts = {}
    if result.check.status is not Status.PASSED:
        facts = {"check": f"{result.check.status.value} at level {result.check.level}"}
        facts |= wrong_facts(result.check)
    # A failing check's diagnostics are the benchmark's own as well.
    if result.diagnostics and result.diagnostics != result.check.diagnostics:
        facts |= diagnostic_facts(result.diagnostics)
    return facts


def _times(result: BenchResult) -> Facts:
    if result.latency is None:
        return {}
    if result.latency.provenance is Provenance.ESTIMATED:
        rows = tuple(map(_estimated_row, result.comparisons))
        arch = target_of(result)
        estimated = given(
            gpu=arch and data_sheet_words(result.check.device, arch),
            latency_us=result.latency.median_us,
            resolution=result.resolution or None,
            ratios=Listing(rows, most=4),
        )
        return {"estimated": estimated, "how": ESTIMATED_ON}
    timed = (one for one in result.comparisons if one.provenance is Provenance.MEASURED)
    measured = {"latency_us": _latency(result.latency)}
    measured |= given(
        speedups=Listing(tuple(map(_comparison, timed)), most=4),
        null_kernel_us=result.null_kernel_us,
        warm_us=result.warm_us,
        achieved_gb_s=result.achieved_gb_s,
        copy_gb_s=result.copy_gb_s,
        plain_copy_us=result.plain_copy and result.plain_copy.latency.median_us,
    )
    return {"measured": measured, "how": MEASURED_ON}


def _latency(latency: Latency) -> Facts:
    facts: Facts = {"median": latency.median_us}
    if latency.spread is not None:
        facts["p10"], facts["p90"], facts["least"] = latency.spread
    return facts | {"replays": latency.replays, "l2": "cold"}


def _comparison(one: Comparison) -> Facts:
    row: Facts = {"baseline": one.baseline.label, "verdict": one.verdict}
    if one.speedup is not None and one.interval is not None:
        row |= {"speedup": one.speedup, "interval_95": list(one.interval)}
    return row | given(
        pairs=one.pairs,
        dropped_pairs=one.dropped_pairs or None,
        baseline_us=one.baseline_latency and one.baseline_latency.median_us,
        noise_threshold_fraction=one.noise_floor and one.noise_floor.threshold,
        not_like_for_like="; ".join(one.like_for_like.differences),
    )


def _estimated_row(one: Comparison) -> Facts:
    baseline_us = one.baseline_latency and one.baseline_latency.median_us
    return given(baseline=one.baseline.label, ratio=one.speedup, baseline_us=baseline_us)


def _full_facts(result: BenchResult) -> Facts:
    functions = tuple(function_rows(result.check.compiled))
    return {
        "elapsed": {"provenance": "measured", "seconds": result.elapsed_s},
        **given(
            seed=result.seed,
            buffers=_dumped("computed", result.rotation),
            timed_outputs=_dumped("measured", result.timed_outputs),
            clocks=_dumped("measured", result.state),
            gpu_facts=_dumped("computed", result.gpu),
        ),
        "baselines": Listing(tuple(map(_baseline, result.comparisons))),
        "compiled": {"provenance": "computed", "functions": Listing(functions)},
        **build_facts(result.check.compiled),
    }


def _dumped(provenance: str, record: Record | None) -> Facts:
    """Return a record's fields under how they came to be; nothing for none."""
    if record is None:
        return {}
    return {"provenance": provenance} | record.model_dump(mode="json", exclude_none=True)


def _baseline(one: Comparison) -> Facts:
    return given(
        baseline=one.baseline.label,
        library=one.baseline.library or "none",
        kernels=", ".join(one.baseline.kernels),
        noise_floor=_dumped("measured", one.noise_floor),
    )
