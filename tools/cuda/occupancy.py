"""Theoretical occupancy of a kernel on a GPU, from its resources and the launch alone.

Computed, not achieved: it says how many warps could be resident, not how many were. Clusters and
the preferred carve-out of the launch are left out.
"""

import sys
from dataclasses import dataclass
from math import prod
from typing import Literal, Self

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.compile_result import KernelResources, Occupancy
from kopt.kernels.plan import Launch

Limiter = Literal["warps", "blocks", "registers", "shared_memory", "barriers"]

# Of compute capability 7.0 to 12.x. Source: cuda_occupancy.h of CUDA 13.2,
# cudaOccRegAllocationGranularity, cudaOccSubPartitionsPerMultiprocessor,
# cudaOccSMemAllocationGranularity and cudaOccMaxBlocksPerSMBlockBarrierLimit.
_WARP_THREADS = 32
_REGISTER_GRANULARITY = 256
_SUB_PARTITIONS = 4
_SMEM_GRANULARITY_BYTES = 128
_MAX_REGISTERS_PER_THREAD = 255
_MAX_THREADS_PER_BLOCK = 1024
_HOPPER = (9, 0)
"""From here on named barriers limit the blocks of an SM: two for each block that it can hold."""
_THOR = (11, 0)
"""From here on one."""


@dataclass(frozen=True)
class BlockResources:
    """What one block needs."""

    threads: int
    registers_per_thread: int
    static_smem_bytes: int
    dynamic_smem_bytes: int
    barriers: int = 0
    """Block-wide barriers that the kernel names."""

    @classmethod
    def of(cls, kernel: KernelResources, threads: int, dynamic_smem_bytes: int) -> Self:
        """Return the needs of a block of `threads` of `kernel`."""
        registers, static = kernel.registers_per_thread, kernel.static_smem_bytes
        return cls(threads, registers, static, dynamic_smem_bytes, kernel.barriers)


def blocks_per_sm(block: BlockResources, gpu: GpuSpec) -> tuple[int, tuple[Limiter, ...]]:
    """Return the co-resident blocks of one SM and what limits them; several limiters when they tie.

    0 blocks mean that the block cannot be launched at all.

    Source:
        cuda_occupancy.h of CUDA 13.2, cudaOccMaxActiveBlocksPerMultiprocessor, with
        reservedSharedMemPerBlock = 1024 and the default carve-out (any size the SM offers).
    """
    limits: dict[Limiter, int] = {
        "warps": _limit_by_warps(block, gpu),
        "blocks": gpu.max_blocks_per_sm,
        "registers": _limit_by_registers(block, gpu),
        "shared_memory": _limit_by_shared_memory(block, gpu),
    }
    if block.barriers and gpu.compute_capability >= _HOPPER:
        slots = gpu.max_blocks_per_sm * (1 if gpu.compute_capability >= _THOR else 2)
        limits["barriers"] = slots // block.barriers
    least = min(limits.values())
    return least, tuple(name for name, limit in limits.items() if limit == least)


def launch_occupancy(launch: Launch, kernel: KernelResources, gpu: GpuSpec) -> Occupancy:
    """Return the occupancy of one launch of a plan."""
    threads = prod(launch.block)
    block = BlockResources.of(kernel, threads, launch.dynamic_smem_bytes)
    blocks, limiters = blocks_per_sm(block, gpu)
    warps = blocks * -(-threads // _WARP_THREADS)
    grid_blocks = prod(launch.grid)
    return Occupancy(
        kernel=launch.kernel,
        gpu=gpu.name,
        blocks_per_sm=blocks,
        warps_per_sm=warps,
        theoretical_occupancy=warps * _WARP_THREADS / gpu.max_threads_per_sm,
        limiters=limiters,
        grid_blocks=grid_blocks,
        waves=grid_blocks / (blocks * gpu.sm_count) if blocks else 0.0,
    )


def _limit_by_warps(block: BlockResources, gpu: GpuSpec) -> int:
    if block.threads > _MAX_THREADS_PER_BLOCK:
        return 0
    return gpu.max_threads_per_sm // _WARP_THREADS // -(-block.threads // _WARP_THREADS)


def _limit_by_registers(block: BlockResources, gpu: GpuSpec) -> int:
    """Registers are given out per warp, and each of the four sub-partitions has its own file."""
    if block.registers_per_thread > _MAX_REGISTERS_PER_THREAD:
        return 0
    if block.registers_per_thread == 0:
        return sys.maxsize
    warps_per_block = -(-block.threads // _WARP_THREADS)
    registers_per_warp = _round_up(
        block.registers_per_thread * _WARP_THREADS, _REGISTER_GRANULARITY
    )
    # A block is placed only if its warps fit when spread evenly over the sub-partitions.
    rounded_warps = _round_up(warps_per_block, _SUB_PARTITIONS)
    if registers_per_warp * rounded_warps > gpu.registers_per_sm:
        return 0
    registers_per_partition = gpu.registers_per_sm // _SUB_PARTITIONS
    warps = registers_per_partition // registers_per_warp * _SUB_PARTITIONS
    return warps // warps_per_block


def _limit_by_shared_memory(block: BlockResources, gpu: GpuSpec) -> int:
    used = block.static_smem_bytes + block.dynamic_smem_bytes
    if used > gpu.smem_per_block_optin_bytes:
        return 0
    allocated = _round_up(used + gpu.reserved_smem_per_block_bytes, _SMEM_GRANULARITY_BYTES)
    return gpu.smem_per_sm_bytes // allocated if allocated else sys.maxsize


def _round_up(value: int, granularity: int) -> int:
    return -(-value // granularity) * granularity
