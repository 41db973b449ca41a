"""What happened in a run: rounds, lessons, hypotheses that led to nothing, decisions."""

from collections import defaultdict
from collections.abc import Sequence

from kopt.kernels.record import Record
from kopt.search.agents.plans import Reflection
from kopt.search.records.members import Member
from kopt.search.records.run_state import Event, EventKind
from kopt.search.selection.ranking import rank
from kopt.search.store.run_reader import Row, RunReader

from .spending import known_usd

_DECIDED = {
    EventKind.COMBINED: "merge",
    EventKind.PROMOTED: "promotion",
    EventKind.SOFT_VERIFIED: "soft verification",
}
_MERGED = {True: "kept", False: "given_up"}


class RoundFigures(Record):
    """One round."""

    round: int
    kind: str
    """The kind of its row (`RoundKind`); empty in the runs of an older kopt."""
    candidates: int
    passed: int
    best: int | None
    """`seq` of the best of all rounds up to this one; None while nothing has passed."""
    beam: tuple[int, ...]
    """`seq` of who was kept after it, best first; empty while it is open."""
    cost_usd: float | None
    """The cost of its model calls, as `SpendFigures.cost_usd` counts them; 0 without a call."""


def read_rounds(reader: RunReader, members: Sequence[Member]) -> tuple[RoundFigures, ...]:
    """Return every round that was begun, in order."""
    kinds = {row.number: row.kind for row in reader.rounds()}
    calls: dict[int, list[Row]] = defaultdict(list)
    for call in reader.calls():
        calls[call["round"]].append(call)
    beams = _beams(reader)
    figures: list[RoundFigures] = []
    for number in range(reader.state().round + 1):
        own = [member for member in members if member.round == number]
        best = next(iter(rank(member for member in members if member.round <= number)), None)
        figures.append(
            RoundFigures(
                round=number,
                kind=kinds.get(number, ""),
                candidates=len(own),
                passed=sum(member.passed for member in own),
                best=None if best is None else best.seq,
                beam=beams.get(number, ()),
                cost_usd=known_usd(calls[number]),
            )
        )
    return tuple(figures)


def _beams(reader: RunReader) -> dict[int, tuple[int, ...]]:
    """Return who was kept after each round, from the feed: the last selection of a round counts."""
    beams: dict[int, tuple[int, ...]] = {}
    current = 0
    for event in reader.events():
        if event.kind is EventKind.ROUND_STARTED:
            current = event.data["round"]
        elif event.kind is EventKind.ROUND_DONE:
            beams[current] = tuple(event.data["beam"])
    return beams


class Lessons(Record):
    """What the reflector said that a round has taught."""

    round: int
    reflection: Reflection


def read_lessons(reader: RunReader) -> tuple[Lessons, ...]:
    """Return the reflections of the run, by round; () where no model reflected."""
    return tuple(
        Lessons(round=row.number, reflection=reader.read(row.reflection_sha, Reflection))
        for row in reader.rounds()
        if row.reflection_sha is not None
    )


class LostBranch(Record):
    """A branch of which no candidate passed."""

    branch: str
    """`r2/b3`."""
    slot: str
    family: str
    name: str
    """The name of its hypothesis."""
    why: str


class Decision(Record):
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


def judgements(events: Sequence[Event]) -> tuple[Decision, ...]:
    """Return what was decided on merges, finalists and promotions, oldest first."""
    decided = [(_DECIDED[event.kind], event.data) for event in events if event.kind in _DECIDED]
    return tuple(
        Decision(
            candidate=data["candidate"],
            what=what,
            outcome=data["outcome"] if "outcome" in data else _MERGED[data["kept"]],
            why=data["why"],
        )
        for what, data in decided
    )
