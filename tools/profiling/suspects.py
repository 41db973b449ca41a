"""What may hold a candidate back, by asking the time model what would change without it.

Each suspect takes one trait away (spills, re-reads, narrow accesses ...) and estimates again; the
fall of the estimate ranks it. What makes up most of the estimate (launch, bandwidth, latency or
instructions) is named first. Nothing here is a measurement.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from kopt.config.counted import counted
from kopt.kernels.profile_result import BottleneckName, Suspect, SuspectName
from kopt.kernels.time_estimate import PartName, TimeEstimate
from kopt.tools.cuda.occupancy import launch_occupancy

from . import what_if
from .bottleneck import limit_of
from .what_if import Evaluated

MIN_GAIN_FRACTION = 0.02
"""Below this share of the estimate a trait is not worth a line."""
MOST = 0.4
"""From this share of the estimate on, a part is called what bounds the candidate."""


def _sectors(evaluated: Evaluated) -> Iterator[str]:
    for name, one in evaluated.traffic.items():
        moved, ideal = one.sectors_per_request, one.ideal_sectors_per_request
        if moved and ideal and moved > ideal:
            yield f"{name}: {moved:.3g} sectors per warp access, {ideal:.3g} would do"


def _rereads(evaluated: Evaluated) -> Iterator[str]:
    for tensor in evaluated.model.tensors:
        one = evaluated.traffic.get(tensor.name)
        if one is not None and one.load_bytes > tensor.read_bytes:
            needed = f"{tensor.read_bytes / 1e6:.3g} MB needed"
            yield f"{tensor.name}: {one.load_bytes / 1e6:.3g} MB loaded, {needed}"


def _widths(evaluated: Evaluated) -> Iterator[str]:
    for kernel in evaluated.kernels():
        mix = sorted(kernel.instruction_mix.items())
        accesses = (f"{count} {name}" for name, count in mix if name.startswith(("ldg_", "stg_")))
        yield f"{kernel.name}: {', '.join(accesses)}"


def _spills(evaluated: Evaluated) -> Iterator[str]:
    for kernel in evaluated.kernels():
        if kernel.spill_store_bytes or kernel.spill_load_bytes:
            yield (
                f"{kernel.name}: {kernel.spill_store_bytes} bytes stored and "
                f"{kernel.spill_load_bytes} loaded per thread, "
                f"{kernel.registers_per_thread} registers"
            )


def _occupancies(evaluated: Evaluated) -> Iterator[str]:
    kernels = {kernel.name: kernel for kernel in evaluated.kernels()}
    for launch in evaluated.plan.launches:
        occupancy = launch_occupancy(launch, kernels[launch.kernel], evaluated.gpu)
        yield (
            f"{launch.kernel}: occupancy {occupancy.theoretical_occupancy:.2f}, "
            f"{counted(occupancy.blocks_per_sm, 'block')} per SM, limited by "
            f"{', '.join(occupancy.limiters)}"
        )


def _grids(evaluated: Evaluated) -> Iterator[str]:
    for launch in evaluated.plan.launches:
        blocks = counted(prod(launch.grid), "block")
        yield f"{launch.kernel}: {blocks} for {evaluated.gpu.sm_count} SMs"


def _blocks(evaluated: Evaluated) -> Iterator[str]:
    for launch in evaluated.plan.launches:
        blocks = counted(prod(launch.grid), "block")
        yield f"{launch.kernel}: {blocks} of {prod(launch.block)} threads"


def _barriers(evaluated: Evaluated) -> Iterator[str]:
    barriers = evaluated.counters.barriers_per_block if evaluated.counters else 0.0
    yield f"{counted(barriers, 'barrier')} per block"


def _launches(evaluated: Evaluated) -> Iterator[str]:
    launches = len(evaluated.plan.launches)
    yield "1 launch" if launches == 1 else f"{launches} launches"


@dataclass(frozen=True)
class _Trait:
    """One trait: the candidate without it, how to say it, what addresses it."""

    name: SuspectName
    without: Callable[[Evaluated], Evaluated]
    evidence: Callable[[Evaluated], Iterator[str]]
    statement: str
    families: tuple[str, ...]


_BOUNDS: dict[SuspectName, tuple[BottleneckName, tuple[PartName, ...]]] = {
    "launch_latency": ("launch_bound", ("launch", "fill")),
    "memory_bandwidth": ("memory_bound", ("dram",)),
    "memory_latency": ("latency_bound", ("latency",)),
    "instruction_issue": ("compute_bound", ("issue",)),
}
"""What may be most of the estimate: the bottleneck that it is, and its parts."""

_TRAITS = (
    _Trait(
        "several_launches",
        what_if.one_launch,
        _launches,
        "Each further launch costs its start and sends what lies between through memory.",
        ("pass_fusion",),
    ),
    _Trait(
        "uncoalesced_access",
        what_if.coalesced,
        _sectors,
        "Warps touch more 32-byte sectors than coalesced accesses to the same bytes would.",
        ("layout", "vectorization"),
    ),
    _Trait(
        "repeated_reads",
        what_if.read_once,
        _rereads,
        "Inputs are loaded from global memory more than once.",
        ("register_caching", "smem_tiling", "pass_fusion"),
    ),
    _Trait(
        "narrow_access",
        what_if.wide,
        _widths,
        "Loads and stores are narrower than 16 bytes: more instructions, fewer bytes in flight.",
        ("vectorization",),
    ),
    _Trait(
        "spills",
        what_if.without_spills,
        _spills,
        "Registers are spilled to local memory.",
        ("launch_bounds", "coarsening"),
    ),
    _Trait(
        "low_occupancy",
        what_if.few_registers,
        _occupancies,
        "Registers or shared memory keep blocks from being resident together.",
        ("launch_bounds", "grid_shape"),
    ),
    _Trait(
        "few_blocks",
        what_if.every_sm,
        _grids,
        "The grid has fewer blocks than the GPU has SMs.",
        ("grid_shape", "thread_utilization"),
    ),
    _Trait(
        "many_blocks",
        what_if.larger_blocks,
        _blocks,
        "Starting small blocks one after the other takes longer than their work.",
        ("grid_shape", "coarsening"),
    ),
    _Trait(
        "barriers",
        what_if.without_barriers,
        _barriers,
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
                    evidence=tuple(trait.evidence(evaluated)),
                    gain_us=gain_us,
                    families=trait.families,
                )
            )
    found.sort(key=lambda suspect: -(suspect.gain_us or 0.0))
    return (*_bounds(estimate), *found)


def _bounds(estimate: TimeEstimate) -> list[Suspect]:
    times_us: dict[SuspectName, float] = {
        name: sum(map(estimate.part_us, parts)) for name, (_, parts) in _BOUNDS.items()
    }
    name = max(times_us, key=lambda one: times_us[one])
    if times_us[name] < MOST * estimate.latency_us:
        return []
    bottleneck, parts = _BOUNDS[name]
    limit = limit_of(bottleneck, estimate)
    evidence_of_parts = (
        f"{part.name} {part.time_us:.3g} us: {part.evidence}"
        for launch in estimate.launches
        for part in launch.parts
        if part.name in parts
    )
    share = f"{times_us[name]:.3g} us of estimated {estimate.latency_us:.3g} us"
    return [
        Suspect(
            name=name,
            statement=limit.statement,
            evidence=(share, *evidence_of_parts),
            families=limit.families,
        )
    ]
