"""What may hold a candidate back, by asking the time model what would change without it.

Each suspect takes one trait away (spills, re-reads, narrow accesses ...) and estimates again; the
fall of the estimate ranks it. What makes up most of the estimate (launch, bandwidth, latency or
instructions) is named first. Nothing here is a measurement.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kopt.kernels.profile_result import Suspect, SuspectName
from kopt.kernels.time_estimate import PartName, TimeEstimate

from . import evidence, what_if
from .what_if import Evaluated

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
        evidence.launch_evidence,
        "Each further launch costs its start and sends what lies between through memory.",
        ("pass_fusion",),
    ),
    _Trait(
        "uncoalesced_access",
        what_if.coalesced,
        evidence.sector_evidence,
        "Warps touch more 32-byte sectors than coalesced accesses to the same bytes would.",
        ("layout", "vectorization"),
    ),
    _Trait(
        "repeated_reads",
        what_if.read_once,
        evidence.reread_evidence,
        "Inputs are loaded from global memory more than once.",
        ("register_caching", "smem_tiling", "pass_fusion"),
    ),
    _Trait(
        "narrow_access",
        what_if.wide,
        evidence.width_evidence,
        "Loads and stores are narrower than 16 bytes: more instructions, fewer bytes in flight.",
        ("vectorization",),
    ),
    _Trait(
        "spills",
        what_if.without_spills,
        evidence.spill_evidence,
        "Registers are spilled to local memory.",
        ("launch_bounds", "coarsening"),
    ),
    _Trait(
        "low_occupancy",
        what_if.few_registers,
        evidence.occupancy_evidence,
        "Registers or shared memory keep blocks from being resident together.",
        ("launch_bounds", "grid_shape"),
    ),
    _Trait(
        "few_blocks",
        what_if.every_sm,
        evidence.grid_evidence,
        "The grid has fewer blocks than the GPU has SMs.",
        ("grid_shape", "thread_utilization"),
    ),
    _Trait(
        "many_blocks",
        what_if.larger_blocks,
        evidence.block_evidence,
        "Starting small blocks one after the other takes longer than their work.",
        ("grid_shape", "coarsening"),
    ),
    _Trait(
        "barriers",
        what_if.without_barriers,
        evidence.barrier_evidence,
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
