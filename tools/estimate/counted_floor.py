"""What the simulator counted, held against the way through the machine code."""

from math import prod

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.roofline import ByteModel

from .machine.stage import FollowedPlan

DRAM_EFFICIENCY = 0.88
"""Share of the data-sheet bandwidth that a streaming kernel reaches. Source: FlashInfer's
fused_add_rmsnorm at 16384x4096 moved 2.94 of 3.35 TB/s on an H100 (measured, CUDA graphs)."""
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


def counted_bytes(counters: ExecutionCounters) -> int:
    """Return the bytes of all buffers that one execution loaded and stored."""
    return sum(one.load_bytes + one.store_bytes for one in counters.traffic.values())


def counted_excess(followed: FollowedPlan, counters: ExecutionCounters | None) -> float:
    """Return how much work there is for that which was followed, by the bytes; 1 where they agree.

    They differ where a way was cut, a loop ends where data says, or work is behind a branch on
    data. Less than was followed can only be for a loop whose end was guessed: else it is that the
    busiest SM, which is followed, has more to do than others. Bulk copies are counted and not
    followed: with them nothing is said.
    """
    paths = [one.path for one in followed.launches]
    if counters is None or any(path.has_bulk_copies for path in paths):
        return 1.0
    asked = sum(path.asked_bytes for path in paths)
    counted = counted_bytes(counters)
    excess = counted / asked if asked and counted else 1.0
    if excess < 1.0 and not any(path.has_open_loop for path in paths):
        return 1.0
    return 1.0 if 1 / _NOTICED < excess < _NOTICED else excess
