"""What the simulator counted, held against the way through the machine code."""

from math import inf, log, prod

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.roofline import ByteModel

from .machine.stage import FollowedPlan
from .machine.timing_constants import Clocks

DRAM_EFFICIENCY = 0.88
"""Share of the data-sheet bandwidth that a streaming kernel reaches. Source: FlashInfer's
fused_add_rmsnorm at 16384x4096 moved 2.94 of 3.35 TB/s on an H100 (measured, CUDA graphs)."""
_IN_FLIGHT = 8
"""Loads of one thread that overlap at most. Estimated."""
_NOTICED = 1.1
"""Counted / followed bytes, or the other way round, from which on the followed work is not all."""


def counted_dram_us(
    counters: ExecutionCounters | None, plan: LaunchPlan, model: ByteModel, gpu: GpuSpec
) -> float:
    """Return the time that DRAM needs for what was touched at least once; 0 if nothing counted.

    What is read or written behind a branch on data, or by bulk copies, no followed warp asks for.
    Scratch that fits into L2 is written and read there.
    """
    if counters is None:
        return 0.0
    unique = {one.name: (one.read_bytes, one.written_bytes) for one in model.tensors}
    for buffer in plan.scratch:
        size = prod(buffer.shape) * dtype_size_bytes(buffer.dtype)
        unique[buffer.name] = (size, size) if size > gpu.l2_bytes else (0, 0)
    moved = sum(
        min(one.load_bytes, unique[name][0]) + min(one.store_bytes, unique[name][1])
        for name, one in counters.traffic.items()
    )
    return moved / (gpu.dram_bandwidth_gb_s * 1e3 * DRAM_EFFICIENCY)


def counted_latency_us(
    followed: FollowedPlan, counters: ExecutionCounters | None, gpu: GpuSpec
) -> float:
    """Return the round trips of a thread's counted accesses; 0 where its way was followed whole.

    Without it a way that is cut, by a `switch` over a table say, would be the fastest of all.
    """
    if counters is None or not any(one.path.is_cut for one in followed.launches):
        return 0.0
    trips = counters.global_accesses_per_thread / _IN_FLIGHT
    return max(counters.load_phases_per_thread, trips) * Clocks().dram / gpu.clock_mhz


def counted_bytes(counters: ExecutionCounters) -> int:
    """Return the bytes of all buffers that one execution loaded and stored."""
    return sum(one.load_bytes + one.store_bytes for one in counters.traffic.values())


def counted_excess(followed: FollowedPlan, counters: ExecutionCounters | None) -> float:
    """Return how much more work there is than was followed, by the bytes; 1 where none is missing.

    It is where a way was cut, a loop ends where data says, or work is behind a branch on data. If
    more was followed than counted, the busiest SM has more to do than others. Bulk copies are
    counted and not followed: with them nothing is said.
    """
    excess = _counted_over_asked(followed, counters)
    return excess if _NOTICED < excess < inf else 1.0


def nearest_way(followed: FollowedPlan, counters: ExecutionCounters | None) -> FollowedPlan:
    """Return the plan as it is, or followed along branches on data: by the bytes that were counted.

    Which way data leads no instruction says.
    """
    if 1 / _NOTICED < _counted_over_asked(followed, counters) < _NOTICED:
        return followed
    ways = (followed, followed.taking_branches())
    return min(ways, key=lambda way: abs(log(_counted_over_asked(way, counters))))


def _counted_over_asked(followed: FollowedPlan, counters: ExecutionCounters | None) -> float:
    """Return counted bytes over those that were followed; 1 where nothing can be said."""
    paths = [one.path for one in followed.launches]
    if counters is None or any(path.has_bulk_copies for path in paths):
        return 1.0
    asked, counted = sum(path.asked_bytes for path in paths), counted_bytes(counters)
    if not counted:
        return 1.0
    return counted / asked if asked else inf
