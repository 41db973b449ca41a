"""How good the predictions were: what was predicted when a technique was drawn, against what came.

The reward of a step is its discrepancy, measured - predicted. Only what gained or lost has a gain
to compare with; tries without effect and failures are counted beside it.
"""

from collections.abc import Sequence
from statistics import fmean

from kopt.kernels.record import Record
from kopt.search.knowledge.records import Sample, arch_key


class Calibration(Record):
    """Predicted against measured, over some samples. Means are None where nothing was compared."""

    state: str | None
    """None: of all states."""
    arch_key: str
    """Measurements and estimates are never compared together."""
    compared: int
    """Samples with a prediction that gained or lost."""
    without_effect: int
    """Samples with a prediction that were within noise."""
    failed: int
    """Samples with a prediction that failed."""
    reward: float | None
    """Mean of measured - predicted, ln: below 0 where too much was promised."""
    discrepancy: float | None
    """Mean of |measured - predicted|, ln."""
    with_interval: int
    """Compared samples whose prediction had an interval."""
    coverage: float | None
    """Share of those whose measured gain lies in the interval; 0.95 if it is honest."""


def reward(sample: Sample) -> float | None:
    """Return measured - predicted, ln; None for what has no prediction or no gain."""
    if sample.predicted is None or sample.measured is None:
        return None
    return sample.measured - sample.predicted if sample.outcome in ("gained", "lost") else None


def calibrate(samples: Sequence[Sample]) -> tuple[Calibration, ...]:
    """Return the calibration of each architecture key, over all states and then state by state."""
    groups: dict[tuple[str, str], list[Sample]] = {}  # the state "" stands for all
    for sample in (one for one in samples if one.predicted is not None):
        for state in ("", sample.state):
            key = arch_key(sample.arch, sample.provenance)
            groups.setdefault((key, state), []).append(sample)
    return tuple(
        _calibration(state or None, key, groups[key, state]) for key, state in sorted(groups)
    )


def _calibration(state: str | None, key: str, samples: Sequence[Sample]) -> Calibration:
    rewards = [one for one in map(reward, samples) if one is not None]
    held = [
        sample.predicted_interval[0] <= (sample.measured or 0.0) <= sample.predicted_interval[1]
        for sample in samples
        if reward(sample) is not None and sample.predicted_interval
    ]
    return Calibration(
        state=state,
        arch_key=key,
        compared=len(rewards),
        without_effect=sum(sample.outcome == "within_noise" for sample in samples),
        failed=sum(sample.outcome == "failed" for sample in samples),
        reward=fmean(rewards) if rewards else None,
        discrepancy=fmean(map(abs, rewards)) if rewards else None,
        with_interval=len(held),
        coverage=fmean(held) if held else None,
    )
