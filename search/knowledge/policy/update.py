"""What one sample changes in the evidence of an entry or a pair, and how evidence adds up.

The statistical update: made for every sample, whether or not a model is there. Priors, notes and
deprecation are edits (`edits.py`); nothing here touches them.
"""

from collections.abc import Iterable

from kopt.search.knowledge.records import GAIN_LIMIT, SEEN_LIMIT, Evidence, Sample

GAIN_SPREAD = 0.15
"""ln ratio: standard deviation of the gain of one technique from kernel to kernel in one state.

An assumption (docs/knowledge.md), of the size of the gains themselves. It sets how much a noisy
measurement counts and how wide an interval is before there is evidence.
"""
_SIGMAS = 1.96  # half of a 95 % interval in standard errors of a normal variate


def absorb(evidence: Evidence, sample: Sample) -> Evidence:
    """Return `evidence` after one more try; its `version` is the caller's to set.

    Every outcome counts as a try. Only `gained` and `lost` change the gain: what is within noise
    says that no effect was seen, not how large one is, and what failed was never timed.
    """
    kept = [kernel for kernel in evidence.kernels if kernel != sample.kernel]
    changes: dict[str, object] = {
        "tries": evidence.tries + 1,
        sample.outcome: getattr(evidence, sample.outcome) + 1,
        "kernels": (*kept, sample.kernel)[-SEEN_LIMIT:],
        "seen": (*evidence.seen, sample.id)[-SEEN_LIMIT:],
    }
    if sample.outcome in ("gained", "lost") and sample.measured is not None:
        gain = max(-GAIN_LIMIT, min(GAIN_LIMIT, sample.measured))
        single = Evidence(weight=weight_of(sample), mean=gain)
        changes |= _moments(evidence, single)
    return evidence.model_copy(update=changes)


def weight_of(sample: Sample) -> float:
    """Return how much a gain counts, 0 to 1: 1 for an exact one.

    The weight of an observation with error variance e beside a spread s between kernels:
    s / (s + e). An estimate has no interval and counts as exact: the same program is always
    estimated alike, and estimates are kept apart from measurements.
    """
    if sample.interval is None:
        return 1.0
    low, high = sample.interval
    error = (high - low) / 2 / _SIGMAS
    return GAIN_SPREAD**2 / (GAIN_SPREAD**2 + error**2)


def pooled(several: Iterable[Evidence]) -> Evidence:
    """Return the evidence of disjoint sets of samples together, whatever their order.

    `kernels` and `seen` are of the last that has any.

    Source:
        Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American
        Statistician 37(3), 1983: moments of a union from moments of its parts.
    """
    total = Evidence()
    for one in several:
        changes: dict[str, object] = {
            name: getattr(total, name) + getattr(one, name)
            for name in ("tries", "gained", "lost", "within_noise", "failed")
        }
        changes["version"] = max(total.version, one.version)
        changes["kernels"] = one.kernels or total.kernels
        changes["seen"] = one.seen or total.seen
        total = total.model_copy(update=changes | _moments(total, one))
    return total


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
