"""Which places a round has: for each of the beam's members, for merging, for what is left.

Pure: the same population and settings give the same slots. What is tried in a slot is the
planner's to say, except in those of the reserve, which have their hypothesis already, and in
retries, which keep theirs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from kopt.config.search_settings import SearchSettings
from kopt.kernels.record import Record
from kopt.search.records.members import LineageKind, Member, Population
from kopt.search.selection.crossing import find_pairs, pair_id
from kopt.search.selection.family_standing import retired_families
from kopt.search.selection.lineages import attempts_of, has_run, trace_lineages
from kopt.search.selection.ranking import speed_of

from .plans import Hypothesis

SlotKind = Literal["new", "refine", "expand", "cross", "retry", "reserve"]


class Slot(Record):
    """One candidate that a round has a place for."""

    id: str
    """refine-LABEL, expand-LABEL-1, cross-LABEL-LABEL, new-1; retry-LABEL with the label of the
    failed hypothesis's first candidate; reserve-0 is the first hypothesis of the reserve."""
    kind: SlotKind
    """new: a family of its own, from the starting point or a faster kernel that kopt wrote beside
    it. retry: the failed hypothesis again, with its error. reserve: one of an earlier plan."""
    lineage: LineageKind
    parents: tuple[int, ...]
    """`seq` of the candidates to start from, the skeleton first."""
    why: str
    """In a few words, with the numbers behind it."""


@dataclass(frozen=True)
class PopulationView:
    """All that the slots are decided by."""

    population: Population
    is_first: bool
    """Whether nothing was planned for this run before."""
    past_slots: frozenset[str] = frozenset()
    """Ids of the slots of all earlier rounds."""
    reserve: tuple[Hypothesis, ...] = ()
    """Planned earlier, not written yet; the most promising first."""


def reserve_wanted(view: PopulationView, settings: SearchSettings) -> int:
    """Return how many hypotheses the planner is asked for beyond the slots."""
    return (settings.reserve_factor - 1) * settings.beam.width if view.is_first else 0


def plan_slots(view: PopulationView, settings: SearchSettings) -> tuple[Slot, ...]:
    """Return the slots of a round, at most `settings.round_size`; () if there is nothing to try.

    The first round that is planned starts `beam.width` families from the starting point, or from
    what kopt wrote beside it if that is faster. In the others every member of the beam is refined,
    unless that has failed too often, and expanded, if it is fast enough; parents of different
    families are merged; what is left goes to hypotheses that failed, once each, and then to the
    reserve.
    """
    if not view.population.members:
        return ()
    if view.is_first:
        origin = view.population.beam[0] if view.population.beam else view.population.members[0]
        return tuple(_new(number, origin) for number in range(1, settings.beam.width + 1))
    slots = [
        *_refinements(view, settings),
        *_expansions(view, settings),
        *_merges(view, settings),
        *_retries(view, settings),
        *_reserve(view, settings),
    ]
    return tuple(slots[: settings.round_size])


def _new(number: int, origin: Member) -> Slot:
    """Return a place for a family of its own, from the best that was evaluated beside the start."""
    begun = "the starting point" if origin.seq == 0 else f"#{origin.label}, which kopt wrote"
    why = f"a family of its own, from {begun}"
    return Slot(id=f"new-{number}", kind="new", lineage="expand", parents=(origin.seq,), why=why)


def _refinements(view: PopulationView, settings: SearchSettings) -> Iterator[Slot]:
    lineages = trace_lineages(view.population.members, settings.min_effect)
    for member in view.population.beam:
        fails = lineages[member.seq].refine_fails
        if fails < settings.retire_after:
            yield Slot(
                id=f"refine-{member.label}",
                kind="refine",
                lineage="refine",
                parents=(member.seq,),
                why=f"{fails} of {settings.retire_after} refinements in a row gained nothing",
            )


def _expansions(view: PopulationView, settings: SearchSettings) -> Iterator[Slot]:
    for member in view.population.beam:
        factor, words = _over_baseline(member, view.population.members[0])
        if factor > settings.tree_speedup_threshold:
            for child in range(1, settings.tree_branching_factor + 1):
                yield Slot(
                    id=f"expand-{member.label}-{child}",
                    kind="expand",
                    lineage="expand",
                    parents=(member.seq,),
                    why=f"{words}, more than {settings.tree_speedup_threshold:g}x",
                )


def _over_baseline(member: Member, start: Member) -> tuple[float, str]:
    """Return how fast `member` is over the baseline, surely, and in words.

    On sim, where nothing is measured, over the starting point by the estimates.
    """
    speed, of_start = speed_of(member), speed_of(start)
    if speed is None:
        return 0.0, "no time that counts"
    if member.timing is not None and member.timing.speedup is not None:
        unit = member.timing.speedup.unit
        return speed.low, f"at least {speed.low:.3f}x {unit} (measured)"
    if of_start is None:
        return inf, "it passed and the starting point did not"
    factor = speed.value / of_start.value
    return factor, f"{factor:.3f}x the starting point (estimated)"


def _merges(view: PopulationView, settings: SearchSettings) -> Iterator[Slot]:
    if not settings.population_crossover:
        return
    for skeleton, other in find_pairs(view.population, view.past_slots):
        yield Slot(
            id=pair_id(skeleton, other),
            kind="cross",
            lineage="cross",
            parents=(skeleton.seq, other.seq),
            why=f"{skeleton.family} and {other.family}, both proven",
        )


def _retries(view: PopulationView, settings: SearchSettings) -> Iterator[Slot]:
    """Yield the failed hypotheses that were not tried again yet, the most promising first.

    Promising: its family is still unproven; it ran and was wrong, rather than did not compile; it
    is young.
    """
    members = view.population.members
    retired = retired_families(members, settings)
    proven = {member.family for member in members if member.passed}
    failed = [
        attempt
        for attempt in attempts_of(members).values()
        if attempt[0].branch is not None
        and attempt[0].family not in retired
        and f"retry-{attempt[0].label}" not in view.past_slots
        and all(member.quick is not None and not member.passed for member in attempt)
    ]
    failed.sort(
        key=lambda attempt: (
            attempt[0].family in proven,
            not has_run(attempt[-1]),
            -attempt[0].round,
            attempt[0].order,
        )
    )
    for first, *mended in failed:
        last = mended[-1] if mended else first
        if last.quick is not None:
            yield Slot(
                id=f"retry-{first.label}",
                kind="retry",
                lineage="fix",
                parents=(last.seq,),
                why=f"{last.quick.status.value}: {last.quick.summary}",
            )


def _reserve(view: PopulationView, settings: SearchSettings) -> Iterator[Slot]:
    """Yield a slot for each hypothesis of the reserve, families that the beam lacks first."""
    retired = retired_families(view.population.members, settings)
    present = {member.family for member in view.population.beam}
    places = [i for i, one in enumerate(view.reserve) if one.family not in retired]
    for place in sorted(places, key=lambda i: view.reserve[i].family in present):
        hypothesis = view.reserve[place]
        yield Slot(
            id=f"reserve-{place}",
            kind="reserve",
            lineage="expand",
            parents=hypothesis.parents,
            why=f"planned earlier: {hypothesis.name}",
        )
