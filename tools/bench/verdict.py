"""The verdict rule: what an interval says, when to measure on, and what overrules it.

Source: `faster` or `slower` only if the whole interval lies beyond the threshold of the noise
floor; error rates under extension: docs/benchmarking.md.
"""

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.bench_result import Latency, LikeForLike, PlainCopy, Rotation
from kopt.kernels.roofline import ByteModel, memory_floor_us
from kopt.kernels.status import Verdict

from .intervals import Interval

ABOVE_PEAK = 1.02
"""A data-sheet peak is a rounded number; no copy comes within 5 % of it."""
ENOUGH_ROTATION = 4.0
"""Buffer sets of so many times the L2 leave nothing of a set in it."""

CLEARLY_BELOW_COPY = 0.95
"""A smaller part of a plain copy's time is told. The lowest of the 18 Hopper winners is 0.985 of it
(docs/results.md), with 1.7 % between two GPUs of the model: three times as far is no noise."""


def decide(interval: Interval, threshold: float) -> Verdict | None:
    """Return what an interval of ln(baseline / candidate) says; None while pairs could change it.

    `threshold` is the least log ratio that counts. `inconclusive` only where the interval lies
    inside it: what difference there is does not count.
    """
    if interval.low > threshold:
        return Verdict.FASTER
    if interval.high < -threshold:
        return Verdict.SLOWER
    if -threshold <= interval.low and interval.high <= threshold:
        return Verdict.INCONCLUSIVE
    return None


def next_target(pairs: int, most: int) -> int | None:
    """Return how many pairs to measure in all before the next look; None if there are enough."""
    return None if pairs >= most else min(2 * pairs, most)


def is_impossible(latency_us: float, model: ByteModel, gpu: GpuSpec, rotation: Rotation) -> bool:
    """Return whether memory cannot have moved the workload's bytes in this time.

    Only for rotations of at least 4 times the L2: below, a part of the bytes may lie in the cache.
    """
    return rotation.over_l2 >= ENOUGH_ROTATION and latency_us < least_memory_us(model, gpu)


def least_memory_us(model: ByteModel, gpu: GpuSpec) -> float:
    """Return the time below which memory cannot have moved the workload's bytes."""
    return memory_floor_us(model, gpu) / ABOVE_PEAK


def is_below_copy(latency: Latency, copy: PlainCopy) -> bool:
    """Return whether nine of ten calls are clearly faster than nine of ten copies of as many bytes.

    That refutes nothing, because copies are no bound; `is_impossible` is one.
    """
    theirs, own = copy.latency.spread, latency.spread
    if theirs is None or own is None:
        return False
    return own[1] < CLEARLY_BELOW_COPY * theirs[0]


def final_verdict(decided: Verdict | None, impossible: bool, like_for_like: LikeForLike) -> Verdict:
    """Return the verdict that stands in the result."""
    if impossible:
        return Verdict.IMPOSSIBLE
    if not like_for_like.holds:
        return Verdict.NOT_LIKE_FOR_LIKE
    return Verdict.INCONCLUSIVE if decided is None else decided
