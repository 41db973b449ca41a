"""From what a session gave to the result: comparisons with their verdicts, and what stands beside.

Nothing is measured here, and nothing is compared unless the candidate passed.
"""

from dataclasses import dataclass
from math import exp

import numpy as np

from kopt.kernels.bench_result import Comparison, LikeForLike, Rotation
from kopt.kernels.record import Diagnostic
from kopt.kernels.roofline import memory_floor_us, workload_bytes
from kopt.kernels.status import Verdict

from .intervals import summarize_latency
from .measurement import device_state
from .side_by_side import Contest, Timed, pairing_of
from .timed_case import TimedCase
from .verdict import decide, final_verdict, is_impossible


@dataclass(frozen=True)
class TimedContest:
    """A contest and what its session gave."""

    case: TimedCase
    contest: Contest
    timed: Timed

    @property
    def rotation(self) -> Rotation:
        """The buffer sets."""
        facts = self.timed.facts
        return Rotation(sets=facts.sets, set_bytes=facts.set_bytes, over_l2=facts.rotation_over_l2)

    def times_us(self, place: int) -> list[float]:
        """Return the times of one side; empty where no block counts."""
        return self.timed.measurement.us_per_call.get(place, [])

    def is_impossible(self, place: int) -> bool:
        """Return whether the median of a side is below what the memory allows."""
        times = self.times_us(place)
        model = workload_bytes(self.case.problem, self.case.workload)
        return bool(times) and is_impossible(
            float(np.median(times)), model, self.case.gpu, self.rotation
        )


def comparisons(found: TimedContest) -> tuple[Comparison, ...]:
    """Return the candidate against each baseline, the main one first.

    A library that turns out to allocate inside its call makes room for what is like for like.
    """
    made = (_comparison(found, place) for place in range(len(found.contest.baselines)))
    return tuple(sorted(made, key=lambda comparison: not comparison.like_for_like.holds))


def measured_facts(found: TimedContest) -> dict[str, object]:
    """Return the fields of the result that are no comparison."""
    case, timed = found.case, found.timed
    model = workload_bytes(case.problem, case.workload)
    times, empty = found.times_us(0), found.times_us(timed.empty)
    latency = summarize_latency(times) if times else None
    return {
        "latency": latency,
        "warm_us": timed.warm_us,
        "null_kernel_us": float(np.median(empty)) if empty else None,
        "memory_floor_us": memory_floor_us(model, case.gpu),
        "achieved_gb_s": model.total_bytes / latency.median_us / 1e3 if latency else None,
        "rotation": found.rotation,
        "timed_outputs": timed.outputs.counts,
        "state": device_state(timed.measurement.telemetry),
    }


def notes(found: TimedContest) -> tuple[Diagnostic, ...]:
    """Return what a reader must know to read the numbers."""
    measurement = found.timed.measurement
    texts: list[tuple[str, str]] = []
    if found.is_impossible(0):
        texts.append(
            (
                "the measured time is shorter than the memory needs to move the workload's bytes: "
                "no speedup is reported",
                "look for work that is skipped in timed calls",
            )
        )
    if found.is_impossible(1):
        texts.append(
            (
                "the baseline's time is shorter than the data sheet's bandwidth allows",
                f"is {found.case.gpu.name} the right data sheet for "
                f"{found.case.device.facts.name}? (config/gpus/)",
            )
        )
    if _too_few(found):
        texts.append(
            (
                f"{measurement.disturbed} of {measurement.blocks} blocks were disturbed by "
                "throttling or clock changes: too few pairs count for a verdict",
                "wait until the device has cooled and nothing else runs on it",
            )
        )
    if not found.rotation.is_cold:
        texts.append(
            (
                f"the buffer sets together are {found.rotation.over_l2:.1f} times the L2: the "
                "times are of a partly warm cache",
                "",
            )
        )
    return tuple(
        Diagnostic(severity="warning", message=message, hint=hint or None)
        for message, hint in texts
    )


def _comparison(found: TimedContest, baseline: int) -> Comparison:
    timed, entry = found.timed, found.contest.baselines[baseline]
    pairing, place = pairing_of(baseline), baseline + 1
    facts = timed.facts.sides[place]
    times, interval = found.times_us(place), timed.interval(baseline)
    like = _like_for_like(entry.differences, facts.allocations)
    impossible = found.is_impossible(0) or found.is_impossible(place)
    decided: Verdict | None = None
    if interval is not None and timed.floor is not None and not _too_few(found):
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


def _too_few(found: TimedContest) -> bool:
    return found.timed.measurement.pairs(pairing_of(0)) < found.timed.limits.min_pairs


def _like_for_like(differences: tuple[str, ...], allocations: int) -> LikeForLike:
    allocates = f"it allocates memory inside the call ({allocations} times)"
    found = (*differences, *((allocates,) if allocations else ()))
    return LikeForLike(holds=not found, differences=found)
