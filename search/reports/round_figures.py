"""What each round of a run brought: candidates, the best so far, the beam, its cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.kernels.record import Record
from kopt.search.records.members import Member
from kopt.search.records.run_state import EventKind
from kopt.search.selection.ranking import rank
from kopt.search.store.run_reader import RunReader

from .spending import counted_microusd


class RoundFigures(Record):
    """One round."""

    round: int
    kind: str
    """start, agents, sweep, step, combine or tune; empty in the runs of an older kopt."""
    candidates: int
    passed: int
    best: int | None
    """`seq` of the best of all rounds up to this one; None while nothing has passed."""
    beam: tuple[int, ...]
    """`seq` of who was kept after it, best first; empty while it is open."""
    cost_usd: float
    """Of its model calls, as `RoleSpend.cost_usd` counts them; 0 where none was made."""


def read_rounds(reader: RunReader, members: Sequence[Member]) -> tuple[RoundFigures, ...]:
    """Return every round that was begun, in order."""
    kinds = {row.number: row.kind for row in reader.rounds()}
    costs: dict[int, int] = defaultdict(int)
    for call in reader.calls():
        costs[call["round"]] += counted_microusd(call)
    beams = _beams(reader)
    return tuple(
        _figures(number, members, _Told(kinds.get(number, ""), beams, costs[number]))
        for number in range(reader.state().round + 1)
    )


@dataclass(frozen=True)
class _Told:
    """What the store says of a round beside its candidates."""

    kind: str
    beams: Mapping[int, tuple[int, ...]]
    cost_microusd: int


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


def _figures(number: int, members: Sequence[Member], told: _Told) -> RoundFigures:
    own = [member for member in members if member.round == number]
    best = next(iter(rank(member for member in members if member.round <= number)), None)
    return RoundFigures(
        round=number,
        kind=told.kind,
        candidates=len(own),
        passed=sum(member.passed for member in own),
        best=None if best is None else best.seq,
        beam=told.beams.get(number, ()),
        cost_usd=told.cost_microusd / 1e6,
    )
