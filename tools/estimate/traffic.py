"""Bytes of one call at each level of the memory system, for the time model.

From counted accesses if there are any, else from the byte model alone. It is not a cache
simulation: a buffer's first touch comes from DRAM, every further one from L2 if what the resident
blocks work on fits there. What a warp touches again is in L1 if its share of L1 holds what it
touched in between.
"""

from dataclasses import dataclass, replace
from math import prod

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.roofline import ByteModel

SECTOR_BYTES = 32


@dataclass(frozen=True)
class Traffic:
    """Bytes of one call, all launches together."""

    load_bytes: float
    """Bytes that the program asks for."""
    store_bytes: float
    l1_bytes: float
    """Bytes of whole 32-byte sectors, loads and stores, that the load/store units serve."""
    sector_bytes: float
    """Bytes between L1 and L2: `l1_bytes` without what L1 answers or joins."""
    dram_bytes: float
    sector_waste: float
    """Sectors moved / sectors that would do; 1 is coalesced."""

    def scaled(self, share: float) -> "Traffic":
        """Return the same traffic with every byte count times `share`."""
        return replace(
            self,
            load_bytes=self.load_bytes * share,
            store_bytes=self.store_bytes * share,
            l1_bytes=self.l1_bytes * share,
            sector_bytes=self.sector_bytes * share,
            dram_bytes=self.dram_bytes * share,
        )


@dataclass(frozen=True)
class Demand:
    """What is known of the bytes that one call moves."""

    plan: LaunchPlan
    counters: ExecutionCounters | None
    model: ByteModel
    load_width_bytes: float = 0.0
    """Mean width of a thread's load in the code; 0 where it is not known."""
    store_width_bytes: float = 0.0
    warps_per_sm: int = 0
    """Resident warps, which share an L1; 0 where there are several launches."""


def traffic_of(demand: Demand, resident_fraction: float, gpu: GpuSpec) -> Traffic:
    """Return the traffic of one call; without counters every byte of the model moves once.

    Args:
        demand: Counted accesses go before the byte model, which then only says what is unique.
        resident_fraction: Share of the call's blocks that run at the same time: what one block
            touches twice must stay in L2 together with what the others touch meanwhile. 1 with
            several launches, where everything lies between the first touch and the second.
        gpu: L2 size.
    """
    counters, model = demand.counters, demand.model
    if counters is None or not counters.traffic:
        reads, writes, once = map(float, (model.read_bytes, model.written_bytes, model.total_bytes))
        return Traffic(reads, writes, once, once, once, 1.0)
    unique = _unique_bytes(demand)
    footprint_bytes = sum(max(read, written) for read, written in unique.values())
    fits = footprint_bytes * resident_fraction <= gpu.l2_bytes
    scratch = {buffer.name for buffer in demand.plan.scratch}
    load_bytes = float(sum(buffer.load_bytes for buffer in counters.traffic.values()))
    store_bytes = float(sum(buffer.store_bytes for buffer in counters.traffic.values()))
    l1_sectors = _l1_sectors_per_warp(demand, gpu)
    l1_bytes = sector_bytes = dram_bytes = 0.0
    for name, buffer in counters.traffic.items():
        loads = buffer.load_bytes * _waste(buffer, demand.load_width_bytes)
        stores = buffer.store_bytes * _waste(buffer, demand.store_width_bytes)
        l1_bytes += loads + stores
        if l1_sectors and buffer.first_access_fraction is not None:
            # In the simulator's own accesses: each part of a split one was counted again.
            missed = _waste(buffer, 0.0) * (1 - _found_in_l1(buffer, l1_sectors))
            loads, stores = buffer.load_bytes * missed, buffer.store_bytes * missed
        moved = (loads, stores)
        sector_bytes += sum(moved)
        if not fits:
            dram_bytes += sum(moved)
        elif name not in scratch:  # scratch that fits is written and read within L2
            dram_bytes += sum(map(min, moved, unique[name]))
    asked_bytes = load_bytes + store_bytes
    return Traffic(
        load_bytes=load_bytes,
        store_bytes=store_bytes,
        l1_bytes=l1_bytes,
        sector_bytes=sector_bytes,
        dram_bytes=dram_bytes,
        sector_waste=sector_bytes / asked_bytes if asked_bytes else 1.0,
    )


def _waste(buffer: BufferTraffic, width_bytes: float) -> float:
    """Return sectors moved / sectors that would do, for accesses as wide as those in the code.

    g++ may split an access that nvcc keeps whole. A warp's access of w bytes a thread needs w
    sectors, and touches as many as one of its parts does.
    """
    if not buffer.sectors_per_request or not buffer.ideal_sectors_per_request:
        return 1.0
    return max(1.0, buffer.sectors_per_request / max(buffer.ideal_sectors_per_request, width_bytes))


def _l1_sectors_per_warp(demand: Demand, gpu: GpuSpec) -> float:
    """Return a resident warp's share of L1, which shares its memory with smem; 0 if not known."""
    if not demand.warps_per_sm:
        return 0.0
    return gpu.smem_per_sm_bytes / SECTOR_BYTES / demand.warps_per_sm


def _found_in_l1(buffer: BufferTraffic, l1_sectors: float) -> float:
    """Return the fraction of a buffer's sectors that are touched again before they are evicted.

    A sector stays until the warp has touched `l1_sectors` others. How many it did is counted in
    classes that double in width; within a class they are taken to be spread evenly.
    """
    found = 0.0
    for place, fraction in enumerate(buffer.reuse_fractions):
        fewest = 2 ** (place - 1) if place else 0
        found += fraction * min(1.0, max(0.0, (l1_sectors - fewest) / max(fewest, 1)))
    return found


def _unique_bytes(demand: Demand) -> dict[str, tuple[int, int]]:
    """Bytes of each buffer to read and to write once."""
    unique = {one.name: (one.read_bytes, one.written_bytes) for one in demand.model.tensors}
    for buffer in demand.plan.scratch:
        size_bytes = prod(buffer.shape) * dtype_size_bytes(buffer.dtype)
        unique[buffer.name] = (size_bytes, size_bytes)
    return unique
