"""What may hold a candidate back, by asking the time model what would change without it.

Each suspect takes one thing away (the wait for memory, spills, narrow accesses ...) and estimates
again; the fall of the estimate ranks it. Nothing here is a measurement.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kopt.kernels.profile_result import Suspect, SuspectName
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.cuda.lined_listing import Listing
from kopt.tools.estimate.machine.machine_time import TimedLaunch
from kopt.tools.estimate.machine.stage import FollowedPlan
from kopt.tools.estimate.machine.timing_constants import Clocks

from . import what_if
from .suspect_evidence import SuspectEvidence
from .suspect_words import words_of
from .what_if import Told, WhatIf

MIN_GAIN_FRACTION = 0.05
"""Below this share of the estimate nothing is named."""
MOST_LAUNCHES = 4
"""Launches that differ of which suspects are asked for: those that take longest."""
MOST_STEPS = 20_000
"""Steps that are simulated of each: a tenth of a second."""

_WITHOUT: Mapping[SuspectName, WhatIf] = {
    "memory_latency": what_if.memory_latency,
    "memory_bandwidth": what_if.dram_bandwidth,
    "l2_bandwidth": what_if.l2_bandwidth,
    "instruction_issue": what_if.instructions,
    "code_fetch": what_if.code_fetch,
    "uncoalesced_access": what_if.coalesced,
    "repeated_reads": what_if.read_once,
    "narrow_access": what_if.wide,
    "bank_conflicts": what_if.conflict_free,
    "spills": what_if.without_spills,
    "barriers": what_if.without_barriers,
    "cluster_exchange": what_if.cluster_exchange,
    "low_occupancy": what_if.occupancy,
    "few_blocks": what_if.even_blocks,
    "many_blocks": what_if.block_starts,
}


@dataclass(frozen=True)
class _Gain:
    us: float
    line: int | None = None


def find_suspects(
    evidence: SuspectEvidence, followed: FollowedPlan, listing: Listing
) -> tuple[Suspect, ...]:
    """Return what may hold the candidate back, the largest estimated gain first.

    Args:
        evidence: The estimate, and the numbers behind suspects.
        followed: The same plan as it was followed.
        listing: Its machine code with lines; may be empty.
    """
    estimate = evidence.estimate
    gains: dict[SuspectName, list[_Gain]] = {"launch_latency": [], "several_launches": []}
    for whole, us in _longest(followed, estimate):
        launch = replace(whole, most_steps=min(whole.most_steps, MOST_STEPS))
        told = Told(launch, launch.time(Clocks()))
        scale = us / told.time.us
        for name, gain in _gains(told, listing).items():
            gains.setdefault(name, []).append(_Gain(gain.us * scale, gain.line))
    launch_us = [one.parts_us["launch"] for one in estimate.launches]
    gains["launch_latency"].append(_Gain(sum(launch_us)))
    gains["several_launches"].append(_Gain(sum(launch_us) - max(launch_us)))
    found = [_suspect(name, own, evidence) for name, own in gains.items()]
    enough = [one for one in found if one.gain_us >= MIN_GAIN_FRACTION * estimate.latency_us]
    return tuple(sorted(enough, key=lambda suspect: -suspect.gain_us))


def _longest(followed: FollowedPlan, estimate: TimeEstimate) -> list[tuple[TimedLaunch, float]]:
    """Return the launches that take longest, equal ones together, with their time."""
    found: dict[int, tuple[TimedLaunch, float]] = {}
    for one, estimated in zip(followed.launches, estimate.launches, strict=True):
        _, us = found.get(id(one), (one, 0.0))
        found[id(one)] = (one, us + estimated.latency_us)
    return sorted(found.values(), key=lambda pair: -pair[1])[:MOST_LAUNCHES]


def _gains(told: Told, listing: Listing) -> dict[SuspectName, _Gain]:
    """Return what one launch gains without each."""
    found: dict[SuspectName, _Gain] = {}
    for name, ask in _WITHOUT.items():
        without = ask(told)
        if without is not None:
            us = told.time.us - without.us(told.launch)
            found[name] = _Gain(us, _line(told.launch, without.places, listing))
    found["trigger_latency"] = _Gain(told.time.us - told.time.triggered_us)
    return found


def _line(launch: TimedLaunch, places: Mapping[int, float], listing: Listing) -> int | None:
    """Return the line at which most of a trait is."""
    path = launch.path
    known = {one.address: one.line for one in listing.get(path.launch.kernel, ())}
    amounts: dict[int, float] = {}
    for index, amount in places.items():
        line = known.get(path.code[index].address)
        if line is not None:
            amounts[line] = amounts.get(line, 0.0) + amount
    return max(amounts, key=lambda line: amounts[line], default=None)


def _suspect(name: SuspectName, gains: list[_Gain], evidence: SuspectEvidence) -> Suspect:
    words = words_of(name, len(evidence.profiled.launches))
    return Suspect(
        name=name,
        statement=words.statement,
        evidence=tuple(evidence.of(name)),
        gain_us=max(0.0, sum(gain.us for gain in gains)),
        line=max(gains, key=lambda gain: gain.us).line,
        families=words.families,
    )
