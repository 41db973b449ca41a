"""What may hold a candidate back, by asking the time model what would change without it.

Each suspect takes one trait away (spills, re-reads, narrow accesses ...) and estimates again; the
fall of the estimate ranks it. What makes up most of the estimate (launch, bandwidth, latency or
instructions) is named first. Nothing here is a measurement.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from kopt.config.counted import counted
from kopt.kernels.profile_result import Suspect, SuspectName
from kopt.kernels.time_estimate import PartName, TimeEstimate
from kopt.tools.cuda.occupancy import launch_occupancy

from . import what_if
from .what_if import Evaluated


def _sector_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Buffers whose accesses touch more sectors than needed."""
    traffic = evaluated.counters.traffic if evaluated.counters else {}
    return tuple(
        f"{name}: {one.sectors_per_request:.3g} sectors per warp access, "
        f"{one.ideal_sectors_per_request:.3g} would do"
        for name, one in traffic.items()
        if one.sectors_per_request
        and one.ideal_sectors_per_request
        and one.sectors_per_request > one.ideal_sectors_per_request
    )


def _reread_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Inputs that are loaded more than once."""
    traffic = evaluated.counters.traffic if evaluated.counters else {}
    return tuple(
        f"{tensor.name}: {traffic[tensor.name].load_bytes / 1e6:.3g} MB loaded, "
        f"{tensor.read_bytes / 1e6:.3g} MB needed"
        for tensor in evaluated.model.tensors
        if tensor.name in traffic and traffic[tensor.name].load_bytes > tensor.read_bytes
    )


def _width_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Widths of the global accesses in the code."""
    return tuple(
        f"{kernel.name}: "
        + ", ".join(
            f"{count} {name}"
            for name, count in sorted(kernel.instruction_mix.items())
            if name.startswith(("ldg_", "stg_"))
        )
        for kernel in evaluated.kernels()
    )


def _spill_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Kernels that spill."""
    return tuple(
        f"{kernel.name}: {kernel.spill_store_bytes} bytes stored and {kernel.spill_load_bytes} "
        f"loaded per thread, {kernel.registers_per_thread} registers"
        for kernel in evaluated.kernels()
        if kernel.spill_store_bytes or kernel.spill_load_bytes
    )


def _occupancy_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Resident blocks of each launch and what limits them."""
    kernels = {kernel.name: kernel for kernel in evaluated.kernels()}
    texts: list[str] = []
    for launch in evaluated.plan.launches:
        occupancy = launch_occupancy(launch, kernels[launch.kernel], evaluated.gpu)
        texts.append(
            f"{launch.kernel}: occupancy {occupancy.theoretical_occupancy:.2f}, "
            f"{counted(occupancy.blocks_per_sm, 'block')} per SM, limited by "
            f"{', '.join(occupancy.limiters)}"
        )
    return tuple(texts)


def _grid_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Blocks against SMs."""
    return tuple(
        f"{launch.kernel}: {counted(prod(launch.grid), 'block')} for {evaluated.gpu.sm_count} SMs"
        for launch in evaluated.plan.launches
    )


def _block_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Blocks and their threads."""
    return tuple(
        f"{launch.kernel}: {counted(prod(launch.grid), 'block')} of {prod(launch.block)} threads"
        for launch in evaluated.plan.launches
    )


def _barrier_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """Barriers that one block passes."""
    barriers = evaluated.counters.barriers_per_block if evaluated.counters else 0.0
    return (f"{counted(barriers, 'barrier')} per block",)


def _launch_evidence(evaluated: Evaluated) -> tuple[str, ...]:
    """How many launches there are."""
    launches = len(evaluated.plan.launches)
    return ("1 launch" if launches == 1 else f"{launches} launches",)


MIN_GAIN_FRACTION = 0.02
"""Below this share of the estimate a trait is not worth a line."""
MOST = 0.4
"""From this share of the estimate on, a part is called what bounds the candidate."""


@dataclass(frozen=True)
class _Trait:
    """One trait: the candidate without it, how to say it, what addresses it."""

    name: SuspectName
    without: Callable[[Evaluated], Evaluated]
    evidence: Callable[[Evaluated], tuple[str, ...]]
    statement: str
    families: tuple[str, ...]


@dataclass(frozen=True)
class _Bound:
    """Parts of the estimate that together may be most of it."""

    name: SuspectName
    parts: tuple[PartName, ...]
    statement: str
    families: tuple[str, ...]


ONE_START = (
    "Most of the time is starting the one launch and the first answer from memory; little is left"
    " beyond fewer bytes or an earlier start (programmatic dependent launch)."
)
ONE_START_FAMILIES = ("grid_shape",)

_BOUNDS = (
    _Bound(
        "launch_latency",
        ("launch", "fill"),
        "Most of the time is starting the launch and the first answer from memory; only fewer "
        "launches or an earlier start help.",
        ("pass_fusion", "grid_shape"),
    ),
    _Bound(
        "memory_bandwidth",
        ("dram",),
        "Most of the time is moving bytes to and from DRAM; only fewer bytes help.",
        ("pass_fusion", "register_caching", "cache_policy"),
    ),
    _Bound(
        "memory_latency",
        ("latency",),
        "Threads wait for one round trip to memory after the other with few bytes in flight.",
        ("ilp_unroll", "vectorization", "async_pipeline"),
    ),
    _Bound(
        "instruction_issue",
        ("issue",),
        "The SMs are busy with instructions rather than with memory.",
        ("fp4_intrinsics", "packed_simd", "fast_math", "algebra"),
    ),
)

_TRAITS = (
    _Trait(
        "several_launches",
        what_if.one_launch,
        _launch_evidence,
        "Each further launch costs its start and sends what lies between through memory.",
        ("pass_fusion",),
    ),
    _Trait(
        "uncoalesced_access",
        what_if.coalesced,
        _sector_evidence,
        "Warps touch more 32-byte sectors than coalesced accesses to the same bytes would.",
        ("layout", "vectorization"),
    ),
    _Trait(
        "repeated_reads",
        what_if.read_once,
        _reread_evidence,
        "Inputs are loaded from global memory more than once.",
        ("register_caching", "smem_tiling", "pass_fusion"),
    ),
    _Trait(
        "narrow_access",
        what_if.wide,
        _width_evidence,
        "Loads and stores are narrower than 16 bytes: more instructions, fewer bytes in flight.",
        ("vectorization",),
    ),
    _Trait(
        "spills",
        what_if.without_spills,
        _spill_evidence,
        "Registers are spilled to local memory.",
        ("launch_bounds", "coarsening"),
    ),
    _Trait(
        "low_occupancy",
        what_if.few_registers,
        _occupancy_evidence,
        "Registers or shared memory keep blocks from being resident together.",
        ("launch_bounds", "grid_shape"),
    ),
    _Trait(
        "few_blocks",
        what_if.every_sm,
        _grid_evidence,
        "The grid has fewer blocks than the GPU has SMs.",
        ("grid_shape", "thread_utilization"),
    ),
    _Trait(
        "many_blocks",
        what_if.larger_blocks,
        _block_evidence,
        "Starting small blocks one after the other takes longer than their work.",
        ("grid_shape", "coarsening"),
    ),
    _Trait(
        "barriers",
        what_if.without_barriers,
        _barrier_evidence,
        "Threads wait for each other at block-wide barriers.",
        ("reduction",),
    ),
)


def find_suspects(evaluated: Evaluated) -> tuple[Suspect, ...]:
    """Return what may hold the candidate back, the largest estimated gain first.

    What bounds it altogether comes first if it makes up most of the estimate.
    """
    estimate = evaluated.estimate()
    found: list[Suspect] = []
    for trait in _TRAITS:
        gain_us = estimate.latency_us - trait.without(evaluated).estimate().latency_us
        if gain_us >= MIN_GAIN_FRACTION * estimate.latency_us:
            found.append(
                Suspect(
                    name=trait.name,
                    statement=trait.statement,
                    evidence=trait.evidence(evaluated),
                    gain_us=gain_us,
                    families=trait.families,
                )
            )
    found.sort(key=lambda suspect: -(suspect.gain_us or 0.0))
    return (*_bounds(estimate), *found)


def _bounds(estimate: TimeEstimate) -> list[Suspect]:
    times_us = {bound: sum(map(estimate.part_us, bound.parts)) for bound in _BOUNDS}
    bound = max(times_us, key=lambda one: times_us[one])
    is_one_start = bound.name == "launch_latency" and len(estimate.launches) == 1
    if times_us[bound] < MOST * estimate.latency_us:
        return []
    evidence_of_parts = tuple(
        f"{part.name} {part.time_us:.3g} us: {part.evidence}"
        for launch in estimate.launches
        for part in launch.parts
        if part.name in bound.parts
    )
    share = f"{times_us[bound]:.3g} us of estimated {estimate.latency_us:.3g} us"
    return [
        Suspect(
            name=bound.name,
            statement=ONE_START if is_one_start else bound.statement,
            evidence=(share, *evidence_of_parts),
            families=ONE_START_FAMILIES if is_one_start else bound.families,
        )
    ]
