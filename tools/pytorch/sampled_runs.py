"""Runs of a graph whose roundings are sampled, several at once: each depends on its seed alone.

What they give is added up in the order of the seeds, so that a budget has the same bits however
many run at once. Graphs with little to compute, and those for which torch has threads of its own,
run one after the other.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from math import prod
from typing import TypeVar

from .graph import AxisSize, Graph

T = TypeVar("T")

LITTLE_ELEMENTS = 1 << 20
"""Values of all nodes of a run up to which threads are not worth it: some milliseconds."""
HELD_ELEMENTS = 1 << 27
"""Values of all nodes of the runs of one graph that are under way, 1 GiB in float64.

What they hold at their peak is more: 1.25 GB where half of this allowed 16 runs of a softmax of
2,048 rows and 1,024 columns.
"""


def run_values(graph: Graph, axes: Mapping[str, int]) -> int:
    """Return how many elements the inputs and results of a graph have at these sizes of axes."""
    types = [one for node in graph.nodes for one in node.results if one is not None]
    shapes = [*(one.shape for one in types), *(given.type.shape for given in graph.inputs)]
    return sum(
        prod(axes[size.axis] if isinstance(size, AxisSize) else size for size in shape)
        for shape in shapes
    )


def sampled_runs(run: Callable[[int], T], count: int, values: int) -> Iterator[T]:
    """Yield what `run` gives for the seeds from 0 to `count`, in order.

    Args:
        run: Runs a graph; from any thread.
        count: How many runs.
        values: `run_values` of the graph; it bounds how many run at once.
    """
    at_once = min(processors(), HELD_ELEMENTS // max(1, values))
    if values <= LITTLE_ELEMENTS or at_once < 2:
        yield from map(run, range(count))
        return
    for first in range(0, count, at_once):
        futures = [
            shared_pool().submit(run, seed) for seed in range(first, min(count, first + at_once))
        ]
        try:
            yield from (future.result() for future in futures)
        finally:
            for future in futures:
                future.cancel()
            wait(futures)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def shared_pool() -> ThreadPoolExecutor:
    """Return the threads that all graphs share: cases that are made at once add up to no more."""
    return ThreadPoolExecutor(processors(), "sampled run")
