"""What holds a candidate back most: one name and the numbers that say so, by fixed rules.

The rules read measured facts first and fall back to the time model where none are at hand; a result
says which. They order nothing and promise no gain. docs/profile.md explains the thresholds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kopt.config.counted import counted
from kopt.kernels.compile_result import Occupancy
from kopt.kernels.counters import LaunchCounters
from kopt.kernels.profile_result import Bottleneck, BottleneckName, LaunchProfile, MeasuredTime
from kopt.kernels.roofline import ByteModel
from kopt.kernels.status import Provenance
from kopt.kernels.time_estimate import PartName, TimeEstimate
from kopt.tools.estimate.stage import BUSY_FRACTION, LAUNCH_FRACTION

COPY_FRACTION = 0.8
"""Share of the measured copy bandwidth from which only fewer bytes help."""
LOW_OCCUPANCY = 0.5
"""Theoretical occupancy below which too few warps can hide latency. Source: Little's law; 3.35 TB/s
x 600 ns / 132 SMs is 15 KB in flight on each SM of an H100: half of its 2,048 threads with one
16-byte load each."""
MOST_FACTS = 3
EXCESS_TRAFFIC = 1.2
"""DRAM bytes / needed bytes from which re-reads are worth a word."""
_OWN_LIMITS = ("registers", "shared_memory", "blocks", "barriers")


@dataclass(frozen=True)
class BottleneckLimit:
    """What is said of one bottleneck, what addresses it, and how the time model knows it."""

    statement: str
    families: tuple[str, ...]
    parts: tuple[PartName, ...] = ()
    """Parts of the time model."""


_LIMITS: dict[BottleneckName, BottleneckLimit] = {
    "launch_bound": BottleneckLimit(
        "Starting the kernels takes most of the time; only fewer or earlier launches help.",
        ("pass_fusion", "grid_shape"),
        ("launch",),
    ),
    "memory_bound": BottleneckLimit(
        "DRAM is busy moving bytes; only fewer bytes help.",
        ("pass_fusion", "register_caching", "cache_policy"),
        ("dram",),
    ),
    "l2_bound": BottleneckLimit(
        "The L2 cache is busier than DRAM; fewer or better coalesced accesses help.",
        ("layout", "vectorization", "smem_tiling"),
        ("l2", "sm_intake"),
    ),
    "l1_bound": BottleneckLimit(
        "Load and store units or shared memory are the busiest part; wider accesses, fewer "
        "bank conflicts or fewer shared memory passes help.",
        ("vectorization", "bank_conflicts", "register_caching"),
        ("load_store",),
    ),
    "compute_bound": BottleneckLimit(
        "The SMs are busy with instructions; fewer or cheaper ones help.",
        ("fp4_intrinsics", "packed_simd", "fast_math", "algebra"),
        ("issue",),
    ),
    "occupancy_limited": BottleneckLimit(
        "Too few warps are resident to hide the wait for memory; fewer registers or less shared "
        "memory for each block help.",
        ("launch_bounds", "coarsening", "grid_shape"),
    ),
    "latency_bound": BottleneckLimit(
        "Threads wait, one step after the other, while no unit is busy; more bytes in flight and "
        "shorter dependent chains help.",
        ("ilp_unroll", "vectorization", "async_pipeline", "reduction"),
        ("waiting",),
    ),
}
_ONE_LAUNCH = BottleneckLimit(
    "Starting the one launch takes most of the time; little is left beyond fewer bytes or an"
    " earlier start (programmatic dependent launch, PDL).",
    ("grid_shape",),
)


@dataclass(frozen=True)
class ProfileFacts:
    """Everything that the rules look at."""

    model: ByteModel
    launches: tuple[LaunchProfile, ...]
    """Static facts of each launch; at least one launch."""
    estimate: TimeEstimate
    measured: MeasuredTime | None = None
    counters: tuple[LaunchCounters, ...] = ()
    """Hardware counters of each launch; empty if unavailable."""


def find_bottleneck(facts: ProfileFacts) -> Bottleneck:
    """Return the first rule that holds, from what is measured if it decides, else estimated."""
    found = _from_time(facts.measured) if facts.measured is not None else None
    if found is None and facts.counters:
        found = _from_counters(facts)
        if found is not None and len(found.facts) < MOST_FACTS and facts.measured is not None:
            above = f"{facts.measured.above_null_us:.2f} us above empty launches (measured)"
            found = found.model_copy(update={"facts": (*found.facts, above)})
    found = found or _from_estimate(facts)
    limit = limit_of(found.name, facts.estimate)
    return found.model_copy(update={"statement": limit.statement, "families": limit.families})


def limit_of(name: BottleneckName, estimate: TimeEstimate) -> BottleneckLimit:
    """Return what is said of a bottleneck of this candidate."""
    if name != "launch_bound" or len(estimate.launches) > 1:
        return _LIMITS[name]
    return _ONE_LAUNCH


def _from_time(measured: MeasuredTime) -> Bottleneck | None:
    us = measured.latency.median_us
    launch = measured.null_kernel_us / us
    if launch >= LAUNCH_FRACTION:
        return _measured(
            "launch_bound",
            f"empty kernels of the same launch shape take {measured.null_kernel_us:.2f} us of"
            f" {us:.2f} us ({launch:.0%}, measured)",
            f"{measured.above_null_us:.2f} us above them",
        )
    if measured.copy_fraction >= COPY_FRACTION:
        return _measured(
            "memory_bound",
            f"{measured.achieved_gb_s:,.0f} GB/s is {measured.copy_fraction:.0%} of the copy"
            f" bandwidth, {measured.copy_gb_s:,.0f} GB/s (measured)",
            f"{us:.2f} us where the data sheet's floor is {us * measured.roofline_fraction:.2f} us",
        )
    return None


def _from_counters(facts: ProfileFacts) -> Bottleneck | None:
    """Judge the launch that takes longest by its busiest unit, else by why nothing is busy."""
    main = max(facts.counters, key=lambda launch: launch.time_us or 0.0)
    compute, memory = main.compute_fraction, main.memory_fraction
    if compute is None or memory is None:
        return None
    kernel = f"{main.kernel}: " if len(facts.counters) > 1 else ""
    busy = f"{kernel}compute {compute:.0%}, memory {memory:.0%} of their peaks (counters)"
    if max(compute, memory) < BUSY_FRACTION:
        return _waiting(facts, main, busy)
    if compute >= memory:
        issued = _known("instructions issued in {:.0%} of active cycles", main.issue_fraction)
        return _measured("compute_bound", busy, issued)
    return _busy_memory(facts, main, busy)


def _busy_memory(facts: ProfileFacts, main: LaunchCounters, busy: str) -> Bottleneck:
    dram, l2, memory = main.dram_fraction or 0.0, main.l2_fraction or 0.0, main.memory_fraction
    parts = f"DRAM {dram:.0%}, L2 {l2:.0%} of their peaks (counters)"
    if memory is not None and memory > max(dram, l2) + 0.1:
        conflicts = _known("{:,} shared memory bank conflicts", main.bank_conflicts)
        return _measured("l1_bound", busy, parts, conflicts)
    if l2 > dram:
        hits = _known("{:.0%} of the sectors asked for are found in L2", main.l2_hit_fraction)
        return _measured("l2_bound", busy, parts, hits)
    return _measured("memory_bound", busy, parts, _excess(facts))


def _known(words: str, value: float | None) -> str:
    return "" if value is None else words.format(value)


def _excess(facts: ProfileFacts) -> str:
    """Say what DRAM delivers beyond the need, over all launches; nothing unless all are known."""
    read = [count for one in facts.counters if (count := one.dram_read_bytes) is not None]
    needed = facts.model.read_bytes
    if len(read) < len(facts.counters) or sum(read) < EXCESS_TRAFFIC * needed:
        return ""
    return f"{sum(read):,} bytes read from DRAM where {needed:,} are needed"


def _waiting(facts: ProfileFacts, main: LaunchCounters, busy: str) -> Bottleneck:
    """Nothing is busy: too few warps, or warps that wait."""
    same = (one for one in facts.launches if one.kernel == main.kernel)
    occupancy = next(same, facts.launches[0]).occupancy
    stall = _stall(main)
    limit = _own_limit(occupancy)
    if limit is not None:
        got = _known(", achieved {:.0%} (counters)", main.achieved_occupancy)
        return _measured("occupancy_limited", busy, f"{limit}{got}", stall)
    blocks = counted(occupancy.grid_blocks, "block")
    few = f"{blocks}: {occupancy.waves:.0%} of what the GPU holds at once (computed)"
    return _measured("latency_bound", busy, stall, few if occupancy.waves < 1.0 else "")


def _stall(main: LaunchCounters) -> str:
    if not main.stalls:
        return ""
    top = main.stalls[0]
    lines = [line for line in main.stall_lines if line.reason == top.reason]
    where = f", most at line {lines[0].line}" if lines else ""
    return f"warps wait {top.fraction:.0%} of their time for {top.reason}{where} (counters)"


def _from_estimate(facts: ProfileFacts) -> Bottleneck:
    """Take what the model says the time mostly is, without what a measured time has ruled out."""
    estimate = facts.estimate
    part, ruled_out = estimate.dominant, ""
    if facts.measured is not None:
        ruled_out = _ruled_out(facts.measured)
        part = "waiting" if part in ("launch", "dram") else part
    named: Iterator[BottleneckName] = (
        name for name, limit in _LIMITS.items() if part in limit.parts
    )
    name = next(named)
    share = f"{part.replace('_', ' ')} {estimate.part_us(part):.2f} us of"
    share += f" {estimate.latency_us:.2f} us (estimated)"
    occupancy = max((one.occupancy for one in facts.launches), key=lambda one: one.grid_blocks)
    limit = _own_limit(occupancy)
    if name == "latency_bound" and limit is not None:
        return _estimated("occupancy_limited", ruled_out, share, limit)
    return _estimated(name, ruled_out, share)


def _ruled_out(measured: MeasuredTime) -> str:
    launch = measured.null_kernel_us / measured.latency.median_us
    return (
        f"neither launches ({launch:.0%} of the time) nor bandwidth ({measured.copy_fraction:.0%}"
        " of a copy's) explain it (measured)"
    )


def _own_limit(occupancy: Occupancy) -> str | None:
    """Say what of the kernel's own keeps warps away, where that are many and the grid has more."""
    own = [name for name in occupancy.limiters if name in _OWN_LIMITS]
    theory = occupancy.theoretical_occupancy
    if not own or theory >= LOW_OCCUPANCY or occupancy.waves < 1.0:
        return None
    limit = " and ".join(own).replace("_", " ")
    return f"theoretical occupancy {theory:.0%}, limited by {limit} (computed)"


def _measured(name: BottleneckName, *facts: str) -> Bottleneck:
    return Bottleneck(
        name=name,
        statement=_LIMITS[name].statement,
        facts=tuple(fact for fact in facts if fact)[:MOST_FACTS],
        families=_LIMITS[name].families,
        provenance=Provenance.MEASURED,
    )


def _estimated(name: BottleneckName, *facts: str) -> Bottleneck:
    measured = _measured(name, *facts)
    return measured.model_copy(update={"provenance": Provenance.ESTIMATED})
