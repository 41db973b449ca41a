"""The wall time that a budget counts: all of a run's but that of its first evaluation.

That one, of the starting point, waits for what only has to be made once: workers that start, a
library that builds the baseline (a minute on a fresh machine), oracle outputs. A budget buys
candidates, so that it begins when the starting point has been evaluated, and what is measured next
meets a machine that is ready.
"""

from collections.abc import Sequence

from kopt.search.records.members import Member


def preparing_s(members: Sequence[Member]) -> float | None:
    """Return how long the starting point's evaluation took, in seconds; None until it ended."""
    start = next(iter(members), None)
    return None if start is None or start.quick is None else start.quick.elapsed_s


def counted_s(spent_s: float, preparing: float | None) -> float:
    """Return which of `spent_s` wall seconds count; none while the machine is being prepared."""
    return 0.0 if preparing is None else max(0.0, spent_s - preparing)
