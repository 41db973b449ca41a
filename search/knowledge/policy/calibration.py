"""How good the predictions were: what was predicted when a technique was drawn, against what came.

The reward of a step is its discrepancy, measured - predicted. Only what gained or lost has a gain
to compare with; tries without effect and failures are counted beside it.
"""

from collections.abc import Iterable, Sequence
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
    predicted = [sample for sample in samples if sample.predicted is not None]
    found: list[Calibration] = []
    for key in sorted({_key(sample) for sample in predicted}):
        of_key = [sample for sample in predicted if _key(sample) == key]
        found.append(_calibration(None, key, of_key))
        for state in sorted({sample.state for sample in of_key}):
            of_state = [sample for sample in of_key if sample.state == state]
            found.append(_calibration(state, key, of_state))
    return tuple(found)


def _key(sample: Sample) -> str:
    return arch_key(sample.arch, sample.provenance)


def _calibration(state: str | None, key: str, samples: Sequence[Sample]) -> Calibration:
    rewards = [one for one in map(reward, samples) if one is not None]
    held = [
        sample.predicted_interval[0] <= sample.measured <= sample.predicted_interval[1]
        for sample in samples
        if reward(sample) is not None and sample.predicted_interval and sample.measured is not None
    ]
    return Calibration(
        state=state,
        arch_key=key,
        compared=len(rewards),
        without_effect=sum(sample.outcome == "within_noise" for sample in samples),
        failed=sum(sample.outcome == "failed" for sample in samples),
        reward=_mean(rewards),
        discrepancy=_mean(abs(one) for one in rewards),
        with_interval=len(held),
        coverage=_mean(float(one) for one in held),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None
