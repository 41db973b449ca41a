"""What happened beside the candidates: hypotheses that led to nothing, merges, verdicts."""

from collections.abc import Sequence

from kopt.kernels.record import Record
from kopt.search.records.run_state import Event, EventKind
from kopt.search.store.run_reader import RunReader

_DECIDED = {
    EventKind.PROMOTED: "promotion",
    EventKind.SOFT_VERIFIED: "soft verification",
}


class LostBranch(Record):
    """A branch of which no candidate passed."""

    branch: str
    """`r2/b3`."""
    slot: str
    family: str
    name: str
    """Of its hypothesis."""
    why: str


class Judgement(Record):
    """What was decided about a candidate by a rule of its own."""

    candidate: int
    """Its `seq`."""
    what: str
    """promotion, merge, or soft verification."""
    outcome: str
    """promoted, kept_existing, not_promoted, refused; kept or given_up of a merge; no_objection,
    reject, check_again or not_made of a soft verification."""
    why: str


def lost_branches(reader: RunReader) -> tuple[LostBranch, ...]:
    """Return the branches that failed, by round and ordinal."""
    return tuple(
        LostBranch(
            branch=row.id,
            slot=row.slot,
            family=row.hypothesis["family"],
            name=row.hypothesis["name"],
            why=row.why or "",
        )
        for row in reader.branches()
        if row.state == "failed"
    )


def judgements(events: Sequence[Event]) -> tuple[Judgement, ...]:
    """Return what was decided on merges, finalists and promotions, oldest first."""
    found: list[Judgement] = []
    for event in events:
        data = event.data
        if event.kind is EventKind.COMBINED:
            outcome = "kept" if data["kept"] else "given_up"
            found.append(
                Judgement(
                    candidate=data["candidate"], what="merge", outcome=outcome, why=data["why"]
                )
            )
        elif event.kind in _DECIDED:
            found.append(
                Judgement(
                    candidate=data["candidate"],
                    what=_DECIDED[event.kind],
                    outcome=data["outcome"],
                    why=data["why"],
                )
            )
    return tuple(found)
