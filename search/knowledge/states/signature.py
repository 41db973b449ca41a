"""The performance signature of a program: bottleneck, suspects and traits of its profile.

A trait is there if its rule holds for a launch, a buffer or the counters of the profile; where a
fact was not counted the trait is missing, which says nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil

from kopt.kernels.profile_result import LaunchProfile, ProfileResult, SuspectName, TensorTraffic
from kopt.kernels.status import Provenance
from kopt.search.knowledge.records import ProfileSignature

LOW_OCCUPANCY = 0.5
"""Theoretical occupancy below which too few warps hide latency: the rule of docs/profile.md."""
IDLE_WAVE_FRACTION = 0.2
"""Share of the block slots of all waves that the last wave leaves empty, from which it counts."""
MOST_WAVES = 5
"""With more waves the last one is less than a fifth of the time, whatever it leaves empty."""
EXCESS_SECTORS = 1.25
"""Sectors per request / ideal sectors from which an access counts as uncoalesced."""
REREAD = 1.5
"""Loaded bytes / needed bytes of a large input from which it counts as read twice."""
LARGE_FRACTION = 0.25
"""An input is large from this fraction of the largest one on; a weight or a scale is not."""
SHARED_LOADS = 4
"""Loads of each byte of a small input from which all blocks are said to share it."""
MANY_BARRIERS = 5
"""Barriers per block: a tree over 32 warps has 5, two shuffle levels have 1 or 2."""
FEW_LOADS_IN_FLIGHT = 2
"""Global loads under way at a time, of threads that make at least twice as many accesses."""
SPECIAL_FRACTION = 0.05
"""Share of special-function instructions from which their pipe matters: at one in eight it is full,
16 results per clock and SM against 128. Source: CUDA Programming Guide, Throughput of Native
Arithmetic Instructions."""
CONFLICT_FRACTION = 0.05
"""Extra shared memory passes / warp instructions from which bank conflicts are worth a word."""
LONG_STALL = 0.3
"""Share of warp cycles waited for one reason from which it is a trait."""

TRAITS = {
    "atomics": "the code has atomic instructions",
    "bank_conflicts": "shared memory accesses take extra passes (counters)",
    "block_limit": "the most blocks that an SM takes leave warp slots empty: blocks are small",
    "few_blocks": "a launch has fewer blocks than the GPU has SMs",
    "few_loads": "threads wait after one or two global loads",
    "latency_chain": "global loads wait for each other in two or more phases",
    "local_memory": "an array lies in local memory although nothing is spilled",
    "many_barriers": "a block passes five or more barriers",
    "matrix": "the code has matrix instructions",
    "no_vector_stores": "no global store moves 8 bytes or more",
    "part_wave": "the last wave of blocks leaves a fifth of all slots empty",
    "reads_twice": "a large input is loaded 1.5 times or more",
    "register_limit": "registers leave under half of the warp slots usable",
    "scalar_access": "most global loads move 4 bytes or less",
    "several_launches": "one call is several launches",
    "shared_limit": "shared memory leaves under half of the warp slots usable",
    "shared_operand": "a small input is loaded by every block",
    "shared_tile": "the code stages data in shared memory",
    "special_functions": "one instruction in twenty is a special function",
    "spills": "registers are spilled to local memory",
    "uncoalesced": "a warp touches 1.25 times the sectors that its bytes need, or more",
    "waits_barrier": "warps wait mostly at barriers (counters)",
    "waits_math": "warps wait mostly for an arithmetic pipe (counters)",
    "waits_memory": "warps wait mostly for data from memory (counters)",
    "waits_queue": "warps wait mostly for a full memory queue (counters)",
    "waits_shared": "warps wait mostly for shared memory or special functions (counters)",
}
"""Every word, and what it says about a program."""

_WAITS = {
    "barrier": "waits_barrier",
    "math_pipe_throttle": "waits_math",
    "long_scoreboard": "waits_memory",
    "lg_throttle": "waits_queue",
    "mio_throttle": "waits_queue",
    "short_scoreboard": "waits_shared",
}
"""Nsight Compute's reasons. Source: Nsight Compute, Kernel Profiling Guide, Warp Stall States."""
_NARROW, _WIDE = (8, 16, 32), (64, 128, 256)


def find_traits(profile: ProfileResult) -> tuple[str, ...]:
    """Return the words of `TRAITS` that hold for the profiled program, sorted."""
    words = (*_of_code(profile), *_of_launches(profile), *_of_counts(profile))
    return tuple(sorted({*words, *_of_hardware(profile)}))


def _of_code(profile: ProfileResult) -> Iterator[str]:
    kernels = [launch.resources for launch in profile.launches]
    mix: Counter[str] = Counter()
    for kernel in kernels:
        mix.update(kernel.instruction_mix)
    instructions = sum(kernel.instructions or 0 for kernel in kernels)
    has_spills = any(one.spill_store_bytes + one.spill_load_bytes for one in kernels)
    rules = {
        "spills": has_spills,
        "local_memory": not has_spills and mix["ldl"] + mix["stl"] > 0,
        "scalar_access": _count(mix, "ldg", _NARROW) > _count(mix, "ldg", _WIDE) + _bulk(mix),
        "no_vector_stores": bool(_count(mix, "stg", _NARROW)) and not _count(mix, "stg", _WIDE),
        "shared_tile": bool(mix["sts"] + _bulk(mix)) and bool(mix["lds"]),
        "atomics": mix["atom"] > 0,
        "matrix": mix["mma"] > 0,
        "special_functions": mix["mufu"] > SPECIAL_FRACTION * instructions,
    }
    yield from (word for word, holds in rules.items() if holds)


def _count(mix: Counter[str], kind: str, widths: tuple[int, ...]) -> int:
    return sum(mix[f"{kind}_{bits}"] for bits in widths)


def _bulk(mix: Counter[str]) -> int:
    """Return the copies that go past the registers: 16 bytes a lane, or whole tiles."""
    return mix["ldgsts"] + mix["tma"]


def _of_launches(profile: ProfileResult) -> Iterator[str]:
    if len(profile.launches) > 1:
        yield "several_launches"
    rules: dict[str, Callable[[LaunchProfile], bool]] = {
        "few_blocks": lambda one: one.occupancy.waves * one.occupancy.blocks_per_sm < 1.0,
        "part_wave": lambda one: _idle_fraction(one.occupancy.waves) >= IDLE_WAVE_FRACTION,
        "register_limit": lambda one: _is_limited(one, LOW_OCCUPANCY, "registers"),
        "shared_limit": lambda one: _is_limited(one, LOW_OCCUPANCY, "shared_memory"),
        "block_limit": lambda one: _is_limited(one, 1.0, "blocks"),
        "few_loads": lambda one: _has_few_loads(one, profile),
    }
    for word, holds in rules.items():
        if any(map(holds, profile.launches)):
            yield word


def _idle_fraction(waves: float) -> float:
    """Return the share of block slots left empty by a last wave that is not the first one."""
    return (ceil(waves) - waves) / ceil(waves) if 1.0 < waves <= MOST_WAVES else 0.0


def _is_limited(launch: LaunchProfile, below: float, limiter: str) -> bool:
    occupancy = launch.occupancy
    return occupancy.theoretical_occupancy < below and limiter in occupancy.limiters


def _has_few_loads(launch: LaunchProfile, profile: ProfileResult) -> bool:
    in_flight = launch.resources.loads_in_flight
    if in_flight is None or profile.counters is None:
        return False
    accesses = profile.counters.global_accesses_per_thread
    return in_flight <= FEW_LOADS_IN_FLIGHT and accesses >= 2 * FEW_LOADS_IN_FLIGHT


def _of_counts(profile: ProfileResult) -> Iterator[str]:
    counters = profile.counters
    if counters is None:
        return
    if counters.barriers_per_block >= MANY_BARRIERS:
        yield "many_barriers"
    if counters.load_phases_per_thread >= 2.0:
        yield "latency_chain"
    largest = max((one.needed_read_bytes for one in profile.traffic), default=0)
    for one in profile.traffic:
        yield from _of_buffer(one, largest)


def _of_buffer(one: TensorTraffic, largest: int) -> Iterator[str]:
    actual, ideal = one.sectors_per_request, one.ideal_sectors_per_request
    if actual and ideal and actual >= EXCESS_SECTORS * ideal:
        yield "uncoalesced"
    if not one.needed_read_bytes or one.load_bytes is None:
        return
    loads = one.load_bytes / one.needed_read_bytes
    if one.needed_read_bytes >= LARGE_FRACTION * largest:
        if loads >= REREAD:
            yield "reads_twice"
    elif loads >= SHARED_LOADS:
        yield "shared_operand"


def _of_hardware(profile: ProfileResult) -> Iterator[str]:
    """Yield what only the counters of a GPU tell."""
    for launch in () if profile.hardware is None else profile.hardware.launches:
        top = launch.stalls[0] if launch.stalls else None
        if top is not None and top.fraction >= LONG_STALL and top.reason in _WAITS:
            yield _WAITS[top.reason]
        conflicts, instructions = launch.bank_conflicts, launch.instructions
        if conflicts and instructions and conflicts >= CONFLICT_FRACTION * instructions:
            yield "bank_conflicts"


def extract_signature(profile: ProfileResult) -> ProfileSignature:
    """Return bottleneck, suspects and traits of a profiled program.

    Of the limits that any kernel has the largest stands first, before what could be taken away.
    Fixed rules only. Without a bottleneck, because the program did not compile, nothing is known.
    """
    if profile.bottleneck is None:
        return signature_of_time()
    limits: list[SuspectName] = [one.name for one in profile.suspects if one.is_limit]
    traits: list[SuspectName] = [one.name for one in profile.suspects if not one.is_limit]
    return ProfileSignature(
        bottleneck=profile.bottleneck.name,
        suspects=(*limits[:1], *traits),
        traits=find_traits(profile),
        provenance=profile.bottleneck.provenance,
    )


def signature_of_time() -> ProfileSignature:
    """Return what is known of a program of which there is a time and no profile: nothing."""
    return ProfileSignature(bottleneck="unknown", provenance=Provenance.UNAVAILABLE)
