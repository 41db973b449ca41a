"""From what a session gave to the result: comparisons with their verdicts, and what stands beside.

Nothing is measured here, and nothing is compared unless the candidate passed.
"""

from math import exp

import numpy as np

from kopt.kernels.bench_result import BenchResult, Comparison, LikeForLike
from kopt.kernels.check_result import CheckResult
from kopt.kernels.precision import Precision
from kopt.kernels.record import Diagnostic
from kopt.kernels.roofline import memory_floor_us, workload_bytes
from kopt.kernels.status import Verdict

from .disturbances import device_state
from .intervals import summarize_latency
from .side_by_side import Timed, pairing_of
from .verdict import decide, final_verdict


def begun(check: CheckResult, precision: Precision) -> BenchResult:
    """Return the result of a benchmark of which only the check is known."""
    return BenchResult(
        status=check.status,
        verdict=None,
        kernel=check.kernel,
        candidate=check.candidate,
        tune=check.tune,
        device=check.device,
        gpu=None,
        precision=precision,
        check=check,
        checked=check.level,
        race_check=check.race_check,
        diagnostics=check.diagnostics,
        elapsed_s=0.0,
    )


def comparisons(timed: Timed) -> tuple[Comparison, ...]:
    """Return the candidate against each baseline, the main one first.

    A library that turns out to allocate inside its call makes room for what is like for like.
    """
    made = (_comparison(timed, place) for place in range(len(timed.contest.baselines)))
    return tuple(sorted(made, key=lambda comparison: not comparison.like_for_like.holds))


def measured_facts(timed: Timed) -> dict[str, object]:
    """Return the fields of the result that are no comparison."""
    case = timed.case
    model = workload_bytes(case.problem, case.workload)
    times, empty = timed.times_us(0), timed.times_us(timed.plan.empty)
    latency = summarize_latency(times) if times else None
    return {
        "latency": latency,
        "warm_us": timed.warm_us,
        "null_kernel_us": float(np.median(empty)) if empty else None,
        "memory_floor_us": memory_floor_us(model, case.gpu),
        "achieved_gb_s": model.total_bytes / latency.median_us / 1e3 if latency else None,
        "rotation": timed.rotation,
        "timed_outputs": timed.outputs.counts,
        "state": device_state(timed.measurement.telemetry),
    }


def notes(timed: Timed) -> tuple[Diagnostic, ...]:
    """Return what a reader must know to read the numbers."""
    measurement = timed.measurement
    told = (
        (
            timed.is_impossible(0),
            "the measured time is shorter than the memory needs to move the workload's bytes: "
            "no speedup is reported",
            "look for work that is skipped in timed calls",
        ),
        (
            timed.is_impossible(1),
            "the baseline's time is shorter than the data sheet's bandwidth allows",
            f"is {timed.case.gpu.name} the right data sheet for "
            f"{timed.case.device.facts.name}? (config/gpus/)",
        ),
        (
            timed.has_too_few_pairs,
            f"{measurement.disturbed} of {measurement.blocks} blocks were disturbed by "
            "throttling or clock changes: too few pairs count for a verdict",
            "wait until the device has cooled and nothing else runs on it",
        ),
        (
            not timed.rotation.is_cold,
            f"the buffer sets together are {timed.rotation.over_l2:.1f} times the L2: the "
            "times are of a partly warm cache",
            None,
        ),
    )
    return tuple(
        Diagnostic(severity="warning", message=message, hint=hint)
        for holds, message, hint in told
        if holds
    )


def _comparison(timed: Timed, baseline: int) -> Comparison:
    entry = timed.contest.baselines[baseline]
    pairing, place = pairing_of(baseline), baseline + 1
    facts = timed.facts.sides[place]
    times, interval = timed.times_us(place), timed.interval(baseline)
    like = _like_for_like(entry.differences, facts.allocations)
    impossible = timed.is_impossible(0) or timed.is_impossible(place)
    decided: Verdict | None = None
    if interval is not None and timed.floor is not None and not timed.has_too_few_pairs:
        decided = decide(interval, timed.floor.threshold)
    shown = None if impossible else interval
    return Comparison(
        baseline=entry.path.model_copy(
            update={
                "library": facts.library,
                "kernels": facts.kernels,
                "nodes_per_call": facts.nodes_per_call,
            }
        ),
        verdict=final_verdict(decided, impossible, like),
        speedup=None if shown is None else exp(shown.median),
        interval=None if shown is None else (exp(shown.low), exp(shown.high)),
        pairs=timed.measurement.pairs(pairing),
        dropped_pairs=timed.measurement.dropped.get(pairing, 0),
        baseline_latency=summarize_latency(times) if times else None,
        noise_floor=timed.floor,
        like_for_like=like,
        log_ratios=tuple(timed.measurement.log_ratios.get(pairing, ())),
    )


def _like_for_like(differences: tuple[str, ...], allocations: int) -> LikeForLike:
    allocates = f"it allocates memory inside the call ({allocations} times)"
    told = (*differences, *((allocates,) if allocations else ()))
    return LikeForLike(holds=not told, differences=told)
