"""Why a candidate is not in the beam, in words that its author can use."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.config.search_settings import SearchSettings
from kopt.kernels.record import Record
from kopt.search.records.members import Member

from .family_evidence import is_contradicted
from .family_standing import FamilyStanding, family_standings
from .lineages import trace_lineages
from .ranking import equivalence_of, rank, refuted_programs, speed_of, speed_words

RetirementReason = Literal[
    "unevaluated",
    "failed",
    "refuted",
    "untimed",
    "same_program",
    "replaced",
    "family_retired",
    "family_full",
    "claim_contradicted",
    "slower",
]


@dataclass(frozen=True)
class Beams:
    """The beam at both ends of a step, numbers of candidates, best first."""

    before: Sequence[int]
    now: Sequence[int]


class Retirement(Record):
    """One candidate that left the beam or never entered it."""

    seq: int
    reason: RetirementReason
    why: str
    """With the numbers behind it."""
    was_in_beam: bool
    """Whether it had a place before this step."""


def find_retirements(
    members: Sequence[Member],
    judged: Iterable[int],
    beams: Beams,
    settings: SearchSettings,
) -> tuple[Retirement, ...]:
    """Return why those of `judged` that have no place in the beam have none, by `seq`.

    Args:
        members: All candidates of the run.
        judged: Numbers of the candidates to judge.
        beams: Before the step and now.
        settings: What the beam was selected by.
    """
    find_reason = _reasons(members, beams, settings)
    found: list[Retirement] = []
    for seq in sorted(set(judged) - set(beams.now)):
        reason, why = find_reason(members[seq])
        was_in_beam = seq in beams.before
        found.append(Retirement(seq=seq, reason=reason, why=why, was_in_beam=was_in_beam))
    return tuple(found)


def _reasons(
    members: Sequence[Member], beams: Beams, settings: SearchSettings
) -> Callable[[Member], tuple[RetirementReason, str]]:
    kept = [members[seq] for seq in beams.now]
    lineages = trace_lineages(members, settings.min_effect)
    refuted = refuted_programs(members)
    standings = {one.family: one for one in family_standings(members, settings)}

    def reason(member: Member) -> tuple[RetirementReason, str]:
        unfit = _unfit(member)
        if unfit is not None:
            return unfit
        refuted_too = refuted.get(equivalence_of(member) or "")
        if refuted_too is not None:
            return "refuted", f"the same program as #{refuted_too}, which a later check refuted"
        same = _stands_for(member, members)
        if same is not None:
            return "same_program", f"the same program as #{same}: equal cubins and launches"
        better = lineages[member.seq].replaced_by
        if better is not None:
            words = speed_words(members[better])
            return "replaced", f"#{better}, a refinement of it, has taken its place: {words}"
        standing = standings.get(member.family)
        if standing is not None and standing.is_retired:
            return "family_retired", _retired_words(standing)
        return _lost_place(member, kept, settings.beam.width)

    return reason


def _unfit(member: Member) -> tuple[RetirementReason, str] | None:
    """Return why a candidate could have no place whatever the others are; None if it could."""
    quick = member.quick
    if quick is None:
        return "unevaluated", "the budget was spent before its turn came"
    if not member.passed:
        return "failed", f"{quick.status.value}: {quick.summary}"
    if member.objection:
        return "refuted", f"its source was read: {member.objection}"
    if member.is_refuted:
        name, found = ("full", member.proof) if member.full else ("second", member.tie)
        if found is not None:
            return "refuted", f"{name} check: {found.status.value}: {found.summary}"
    if member.cost is None:
        return "untimed", f"it has no time that counts: {quick.summary}"
    return None


def _retired_words(standing: FamilyStanding) -> str:
    speed = standing.relative_speed or 0.0
    if standing.state == "spent":
        return f"refining the best of {standing.family} has failed too often in a row"
    return (
        f"{standing.family} has not gained for {standing.rounds_without_gain} rounds, and its best"
        f" has {speed:.0%} of the leader's speed"
    )


def _lost_place(member: Member, kept: Sequence[Member], width: int) -> tuple[RetirementReason, str]:
    """Return why a candidate that could have had a place in the beam has none."""
    last = kept[-1]
    if len(kept) < width or rank([member, last])[0] is member:
        if is_contradicted(member):
            return "claim_contradicted", (
                f"{speed_words(member)}: its machine code does not show {member.family}, so that it"
                " gets no place for another family"
            )
        own = ", ".join(f"#{one.seq}" for one in kept if one.family == member.family)
        return "family_full", (
            f"{speed_words(member)}: {member.family} has its share of the beam already ({own}); the"
            " other places are for other families"
        )
    speed, of_last = speed_of(member), speed_of(last)
    is_open = speed is not None and of_last is not None and of_last.value < speed.high
    return "slower", (
        f"{speed_words(member)}, {'not proven' if is_open else 'no'} faster than"
        f" #{last.seq}, the last of the beam, with {speed_words(last)}"
    )


def _stands_for(member: Member, members: Sequence[Member]) -> int | None:
    """Return which candidate stands for the same program; None if it is `member` itself."""
    equivalence = equivalence_of(member)
    if equivalence is None:
        return None
    same = [one for one in members if equivalence_of(one) == equivalence]
    standing = rank(same)
    return standing[0].seq if standing and standing[0].seq != member.seq else None
