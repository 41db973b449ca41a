"""The statistical update: evidence after one more sample, pooled evidence, evidence of other bases.

Made for every sample, whether or not a model is there. Priors, notes and deprecation are edits
(`edits.py`). A document may claim any number of tries, and its claims cannot be checked here: it
can advise, and the tries that are made here decide.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

from .records import GAIN_LIMIT, OUTCOMES, SEEN_LIMIT, Evidence, Sample

GAIN_SPREAD = 0.1
"""ln ratio: standard deviation of the gain of one technique from kernel to kernel in one state.

An assumption (docs/knowledge.md), of the size of the gains themselves. It sets how much a noisy
measurement counts and how wide an interval is before there is evidence.
"""
SIGMAS = 1.96
"""Half of a 95 % interval in standard errors of a normal variate."""
_NOTHING = Evidence()


def absorb(evidence: Evidence, sample: Sample) -> Evidence:
    """Return the evidence of an entry after one more try; its `version` is the caller's to set.

    Every outcome counts as a try. Only `gained` and `lost` change the gain: what is within noise
    says that no effect was seen, not how large one is, and what failed was never timed.
    """
    gain, known = gain_of(sample), _with_outcome(evidence, sample)
    return known if gain is None else _moved(known, gain, weight_of(sample))


def absorb_pair(pair: Evidence, sample: Sample, alone: Evidence) -> Evidence:
    """Return the evidence of a pair after one more try: its gain is what came on top.

    What came on top is the gain less the mean gain in `alone`, what is known of the second
    technique in the sample's state without it. A mean of n tries is itself uncertain, so that the
    difference counts n / (n + 1) of a gain, and nothing while there is none: a pair learns nothing
    where its second technique is known only in the pair.
    """
    gain = gain_of(sample)
    if gain is None or alone.weight == 0:
        return _with_outcome(pair, sample)
    known = alone.weight / (alone.weight + 1)
    return _moved(_with_outcome(pair, sample), gain - alone.mean, weight_of(sample) * known)


def gain_of(sample: Sample) -> float | None:
    """Return the ln ratio that a sample teaches, clamped to GAIN_LIMIT; None if it teaches none."""
    if sample.outcome not in ("gained", "lost") or sample.measured is None:
        return None
    return max(-GAIN_LIMIT, min(GAIN_LIMIT, sample.measured))


def weight_of(sample: Sample) -> float:
    """Return how much a gain counts, 0 to 1: 1 for an exact one.

    The weight of an observation with error variance e beside a spread s between kernels:
    s / (s + e). An estimate has no interval and counts as exact: the same program is always
    estimated alike, and estimates are kept apart from measurements.
    """
    if sample.interval is None:
        return 1.0
    low, high = sample.interval
    error = (high - low) / 2 / SIGMAS
    return GAIN_SPREAD**2 / (GAIN_SPREAD**2 + error**2)


def pooled(several: Iterable[Evidence]) -> Evidence:
    """Return the evidence of disjoint sets of samples together, whatever their order.

    `kernels` and `seen` are of the last that has any.

    Source:
        Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American
        Statistician 37(3), 1983: moments of a union from moments of its parts.
    """
    return reduce(_together, several, _NOTHING)


def _together(one: Evidence, other: Evidence) -> Evidence:
    if one is _NOTHING:
        return other
    changes: dict[str, object] = {
        "version": max(one.version, other.version),
        "kernels": other.kernels or one.kernels,
        "seen": other.seen or one.seen,
    }
    for name in ("tries", *OUTCOMES):
        changes[name] = getattr(one, name) + getattr(other, name)
    return one.model_copy(update=changes | _moments(one, other))


def _with_outcome(evidence: Evidence, sample: Sample) -> Evidence:
    kept = [kernel for kernel in evidence.kernels if kernel != sample.kernel]
    return evidence.model_copy(
        update={
            "tries": evidence.tries + 1,
            sample.outcome: getattr(evidence, sample.outcome) + 1,
            "kernels": (*kept, sample.kernel)[-SEEN_LIMIT:],
            "seen": (*evidence.seen, sample.id)[-SEEN_LIMIT:],
        }
    )


def _moved(evidence: Evidence, gain: float, weight: float) -> Evidence:
    single = Evidence(weight=weight, mean=gain)
    return evidence.model_copy(update=_moments(evidence, single))


def _moments(one: Evidence, other: Evidence) -> dict[str, object]:
    """Return weight, mean and m2 of both together."""
    weight = one.weight + other.weight
    if weight == 0:
        return {}
    apart = other.mean - one.mean
    return {
        "weight": weight,
        "mean": one.mean + apart * other.weight / weight,
        "m2": one.m2 + other.m2 + apart**2 * one.weight * other.weight / weight,
    }


MOST_OF_OTHERS = 20
"""Tries of all other bases together that count for one entry on one architecture.

An assumption: enough to be sure of a gain of the size of its spread from kernel to kernel
(`GAIN_SPREAD` / sqrt(20) is 0.02), few enough to be outweighed in some runs."""


def counted(origins: Mapping[str, Evidence], own: str) -> Evidence:
    """Return what counts of the evidence of `origins`: all of the base `own`, some of others."""
    theirs = pooled(origins[name] for name in sorted(origins) if name != own)
    return pooled([_limited(theirs), *(origins[name] for name in origins if name == own)])


def _limited(evidence: Evidence) -> Evidence:
    """Return `evidence` as if it were of fewer tries that ended alike."""
    if evidence.tries <= MOST_OF_OTHERS:
        return evidence
    share = MOST_OF_OTHERS / evidence.tries
    counts = {name: round(share * getattr(evidence, name)) for name in OUTCOMES}
    moments = {"weight": share * evidence.weight, "m2": share * evidence.m2}
    return evidence.model_copy(update={**counts, **moments, "tries": sum(counts.values())})
