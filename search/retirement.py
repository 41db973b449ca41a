"""Why a candidate is not in the beam, in words that its author can use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance

from .beam import rank
from .proposer import Member

RetirementReason = Literal[
    "unevaluated", "failed", "refuted", "untimed", "same_program", "family_full", "slower"
]


@dataclass(frozen=True)
class Beams:
    """The beam at both ends of a step, numbers of candidates, best first."""

    before: Sequence[int]
    now: Sequence[int]
    width: int
    """Its places."""


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
    subjects: Iterable[int],
    beams: Beams,
) -> tuple[Retirement, ...]:
    """Return why those of `subjects` that have no place in the beam have none, by `seq`.

    Args:
        members: All candidates of the run.
        subjects: Numbers of the candidates to judge.
        beams: Before the step and now.
    """
    kept = [members[seq] for seq in beams.now]
    found: list[Retirement] = []
    for seq in sorted(set(subjects) - set(beams.now)):
        reason, why = _reason(members[seq], members, kept, beams.width)
        was_in_beam = seq in beams.before
        found.append(Retirement(seq=seq, reason=reason, why=why, was_in_beam=was_in_beam))
    return tuple(found)


def speed_words(member: Member) -> str:
    """Return `1.213x flashinfer (measured)` or `2.413 us (estimated)`; `no time` for neither."""
    quick = member.quick
    if quick is not None and quick.speedup is not None:
        return f"{quick.speedup.value:.3f}x {quick.speedup.unit} (measured)"
    latency = None if quick is None else quick.latency
    if latency is None or latency.value is None or latency.provenance is Provenance.MEASURED:
        return "no time"
    return f"{latency.value:.3f} us ({latency.provenance.value})"


def _reason(
    member: Member, members: Sequence[Member], kept: Sequence[Member], width: int
) -> tuple[RetirementReason, str]:
    quick = member.quick
    if quick is None:
        return "unevaluated", "the budget was spent before its turn came"
    if not member.passed:
        return "failed", f"{quick.status.value}: {quick.summary}"
    if member.is_refuted and member.full is not None:
        return "refuted", f"full check: {member.full.status.value}: {member.full.summary}"
    if member.cost is None:
        return "untimed", f"it has no time that counts: {quick.summary}"
    same = _stands_for(member, members)
    if same is not None:
        return "same_program", f"the same program as #{same}: equal cubins and launches"
    last = kept[-1]  # whoever passed with a time and has no place lost it to somebody
    if len(kept) < width or (last.cost is not None and member.cost < last.cost):
        own = ", ".join(f"#{one.seq}" for one in kept if one.family == member.family)
        return "family_full", (
            f"{speed_words(member)}: {member.family} has its share of the beam already ({own}); the"
            " other places are for other families"
        )
    return "slower", (
        f"{speed_words(member)}, no faster than #{last.seq}, the last of the beam, with"
        f" {speed_words(last)}"
    )


def _stands_for(member: Member, members: Sequence[Member]) -> int | None:
    """Return which candidate stands for the same program; None if it is `member` itself."""
    equivalence = None if member.quick is None else member.quick.equivalence
    if equivalence is None:
        return None
    same = [one for one in members if one.quick and one.quick.equivalence == equivalence]
    standing = rank(same)
    return standing[0].seq if standing and standing[0].seq != member.seq else None
