"""The time model of one launch: its parts, from static facts and its share of the traffic.

The unit of thought is the SM with the most blocks: the launch ends when that one does. Every part
is a lower bound of its own kind; docs/estimate.md says how they combine and why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod

from kopt.config.counted import counted
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.compile_result import KernelResources, Occupancy
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.plan import Launch
from kopt.kernels.time_estimate import LaunchEstimate, PartName, TimePart

from . import constants
from .instructions import StaticMix
from .traffic import SECTOR_BYTES, Traffic

_WARP_THREADS = 32
TimeAndEvidence = tuple[float, str]
"""Microseconds of a part, and the numbers behind them."""


@dataclass(frozen=True)
class LaunchModel:
    """One launch with everything that its parts are computed from."""

    launch: Launch
    kernel: KernelResources
    occupancy: Occupancy
    gpu: GpuSpec
    traffic: Traffic
    """Traffic of this launch only."""
    counters: ExecutionCounters | None
    """Counters of the whole plan: only averages per block and per thread are read here."""
    shared_bytes: float
    """Shared-memory traffic of this launch."""
    memsets: int = 0
    """Scratch buffers that are zeroed before this launch."""

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return prod(self.launch.grid)

    @property
    def warps(self) -> int:
        """Warps of the grid."""
        return self.blocks * self.warps_per_block

    @property
    def threads(self) -> int:
        """Threads of the grid."""
        return self.blocks * prod(self.launch.block)

    @property
    def warps_per_block(self) -> int:
        """Warps of one block, the last one possibly partial."""
        return -(-prod(self.launch.block) // _WARP_THREADS)

    @property
    def busiest_blocks(self) -> int:
        """Blocks of the SM that gets the most."""
        return ceil(self.blocks / self.gpu.sm_count)

    @property
    def busiest_fraction(self) -> float:
        """Share of the launch's work that falls to the busiest SM."""
        return self.busiest_blocks / self.blocks

    @property
    def resident_blocks(self) -> int:
        """Blocks that run on the busiest SM at the same time."""
        return max(1, min(self.occupancy.blocks_per_sm, self.busiest_blocks))

    @property
    def rounds(self) -> int:
        """How often the busiest SM is filled with blocks."""
        return ceil(self.busiest_blocks / self.resident_blocks)

    @property
    def mix(self) -> StaticMix:
        """The kernel's instructions."""
        return StaticMix(self.kernel)

    @property
    def accesses_per_thread(self) -> float:
        """Global loads and stores that one thread executes.

        From bytes and the widths in the cubin: g++ may split an access that nvcc keeps whole, so
        the simulator's own count only stands in where the cubin's instructions are unknown.
        """
        counted = self.counters.global_accesses_per_thread if self.counters else 0.0
        if counted and not self.mix.accesses:
            return counted
        return (
            (self.traffic.load_bytes + self.traffic.store_bytes)
            / self.threads
            / self.mix.access_bytes
        )

    @property
    def loads_per_thread(self) -> float:
        """Global loads that one thread executes."""
        return self.traffic.load_bytes / self.threads / self.mix.load_bytes

    @property
    def trips(self) -> float:
        """How often the code is gone through: executed global accesses / those in the code."""
        return self.accesses_per_thread / self.mix.accesses if self.mix.accesses else 1.0


def estimate_launch(model: LaunchModel) -> LaunchEstimate:
    """Return the parts of one launch and the time they combine to."""
    parts = tuple(
        TimePart(name=name, time_us=time_us, overlaps=name not in _ADDED, evidence=evidence)
        for name, compute in _PARTS.items()
        for time_us, evidence in [compute(model)]
    )
    return LaunchEstimate(kernel=model.launch.kernel, latency_us=combine(parts), parts=parts)


def combine(parts: tuple[TimePart, ...]) -> float:
    """Return the time of parts that add up and parts that overlap, in microseconds.

    Starting blocks takes nothing from the others: it is only not over before its own time.
    """
    power = constants.OVERLAP_POWER
    added = sum(part.time_us for part in parts if not part.overlaps)
    resources = [part for part in parts if part.overlaps and part.name != "block_starts"]
    overlapped = sum(part.time_us**power for part in resources) ** (1 / power)
    starts = sum(part.time_us for part in parts if part.name == "block_starts")
    return float(added + max(overlapped, starts))


def _launch(model: LaunchModel) -> TimeAndEvidence:
    share = constants.PDL_LAUNCH_SHARE if model.launch.pdl else 1.0
    count = share + model.memsets
    return count * model.gpu.null_kernel_us, (
        f"{count:g} x {model.gpu.null_kernel_us:g} us of an empty kernel"
        + (", programmatic dependent launch" if model.launch.pdl else "")
        + (f", {model.memsets} memset of scratch" if model.memsets else "")
    )


def _fill(model: LaunchModel) -> TimeAndEvidence:
    if model.traffic.load_bytes > 0:
        return constants.DRAM_LATENCY_US, "the first load's round trip to DRAM"
    return 0.0, "no global loads"


def _barrier(model: LaunchModel) -> TimeAndEvidence:
    barriers = (
        model.counters.barriers_per_block
        if model.counters
        else model.mix.count("bar") * model.trips
    )
    clocks_each = (
        constants.BARRIER_BASE_CLOCKS + constants.BARRIER_CLOCKS_PER_WARP * model.warps_per_block
    )
    return barriers * clocks_each * model.rounds / model.gpu.clock_mhz, (
        f"{barriers:.3g} per block of {counted(model.warps_per_block, 'warp')}, "
        f"{counted(model.rounds, 'round')} of blocks"
    )


def _block_start(model: LaunchModel) -> TimeAndEvidence:
    free_per_sm, start_us = constants.FREE_BLOCKS_PER_SM, constants.BLOCK_START_US
    if model.launch.pdl:
        free_per_sm, start_us = constants.PDL_FREE_BLOCKS_PER_SM, constants.PDL_BLOCK_START_US
    free = free_per_sm * model.gpu.sm_count
    return max(0, model.blocks - free) * start_us, (
        f"{counted(model.blocks, 'block')} of {prod(model.launch.block)} threads, all but "
        f"{free} start {start_us * 1e3:g} ns after the one before"
        + (", programmatic dependent launch" if model.launch.pdl else "")
    )


def _dram(model: LaunchModel) -> TimeAndEvidence:
    bandwidth_gb_s = model.gpu.dram_bandwidth_gb_s * constants.DRAM_EFFICIENCY
    moved = model.traffic.dram_bytes
    return moved / (bandwidth_gb_s * 1e3), f"{moved / 1e6:.3g} MB at {bandwidth_gb_s:.0f} GB/s"


def _l2(model: LaunchModel) -> TimeAndEvidence:
    moved = model.traffic.sector_bytes + _spill_requests(model) * 4 * SECTOR_BYTES
    clocks = moved / constants.L2_BYTES_PER_CLOCK
    return clocks / model.gpu.clock_mhz, (
        f"{moved / 1e6:.3g} MB in whole sectors, {model.traffic.sector_waste:.3g} x what "
        "coalesced accesses need"
    )


def _sm_intake(model: LaunchModel) -> TimeAndEvidence:
    bytes_in = model.traffic.sector_bytes * model.busiest_fraction
    return bytes_in / constants.SM_INTAKE_BYTES_PER_CLOCK / model.gpu.clock_mhz, (
        f"{bytes_in / 1e3:.3g} kB through the busiest SM, which has "
        f"{model.busiest_blocks} of {counted(model.blocks, 'block')}"
    )


def _load_store(model: LaunchModel) -> TimeAndEvidence:
    spills = _spill_requests(model)
    requests = model.accesses_per_thread * model.warps + spills
    sectors = model.traffic.l1_bytes / SECTOR_BYTES + 4 * spills
    bytes_per_clock = constants.L1_SECTORS_PER_CLOCK * SECTOR_BYTES
    clocks = max(requests, sectors / constants.L1_SECTORS_PER_CLOCK)
    clocks += model.shared_bytes / bytes_per_clock
    return clocks * model.busiest_fraction / model.gpu.clock_mhz, (
        f"{requests:.3g} warp accesses, {counted(sectors, 'sector')}, {spills:.3g} of the "
        f"accesses spills, {model.shared_bytes / 1e6:.3g} MB of shared memory"
    )


def _issue(model: LaunchModel) -> TimeAndEvidence:
    pipe, clocks = model.mix.clocks_per_warp()
    time_us = clocks * model.trips * model.warps * model.busiest_fraction / model.gpu.clock_mhz
    return time_us, (
        f"{counted(model.kernel.instructions or 0, 'instruction')} in the code, gone "
        f"through {counted(model.trips, 'time')}; bound by {pipe}"
    )


def _latency(model: LaunchModel) -> TimeAndEvidence:
    known = model.kernel.loads_in_flight
    in_code = model.mix.loads if known is None else known
    in_flight = min(max(in_code, 1), constants.MAX_LOADS_IN_FLIGHT)
    phases = model.counters.load_phases_per_thread if model.counters else 0.0
    trips_each = max(phases, model.loads_per_thread / in_flight)
    trips = max(0.0, trips_each * model.rounds - 1)  # the first one is `fill`
    return trips * constants.DRAM_LATENCY_US, (
        f"{counted(trips_each, 'dependent round trip')} per thread "
        f"({counted(in_flight, 'load')} of {counted(model.mix.load_bytes, 'byte')} in flight), "
        f"{counted(model.rounds, 'round')} of {counted(model.resident_blocks, 'block')} on the "
        "busiest SM"
    )


def _spill_requests(model: LaunchModel) -> float:
    """Warp accesses to local memory in the whole launch."""
    return model.mix.spills * model.trips * model.warps


_PARTS: dict[PartName, Callable[[LaunchModel], TimeAndEvidence]] = {
    "launch": _launch,
    "fill": _fill,
    "barriers": _barrier,
    "block_starts": _block_start,
    "dram": _dram,
    "l2": _l2,
    "sm_intake": _sm_intake,
    "load_store": _load_store,
    "issue": _issue,
    "latency": _latency,
}
_ADDED: tuple[PartName, ...] = ("launch", "fill", "barriers")
"""Parts that add up; the others overlap."""
