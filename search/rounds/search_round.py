"""One round of the search: opened, finished, and what it means for the search as a whole.

A caller's step and `kopt run` do the same rounds; they differ in when they stop (`Judge`).
"""

from collections.abc import Callable
from dataclasses import replace

from kopt.search.models.errors import BudgetSpent
from kopt.search.records.members import Proposal
from kopt.search.records.run_state import RoundRow, StopReason
from kopt.search.selection.beam import find_ties
from kopt.search.selection.stopping import FinishedRound, roofline_reached, stop_reason
from kopt.search.store.round_table import Opening

from .agents_round import plan_round, reflect, write_branches
from .drive import RunDrive
from .rollouts import ended, plan_rollouts
from .variants import take_apart

Stop = tuple[StopReason, str]
Judge = Callable[[RunDrive], Stop | None]
"""Says whether the search ends after the round that has just been evaluated."""


def judge_search(drive: RunDrive) -> Stop | None:
    """End the search at a limit, or where a further round would not pay."""
    rounds = drive.search.store.reader.rounds()
    planned = [one.number for one in rounds if one.kind == "agents"]
    number = drive.state().round
    finished = FinishedRound(number, starts_families=planned == [number])
    settings = drive.state().settings.search
    if drive.follows_trajectories:
        return drive.limit_reached() or roofline_reached(drive.members(), settings)
    return drive.limit_reached() or stop_reason(drive.members(), finished, settings)


def judge_step(drive: RunDrive) -> Stop | None:
    """End the search at a spent budget alone: a small gain is the caller's to judge."""
    limit = drive.limit_reached()
    return limit if limit is not None and limit[0] == "budget" else None


def open_next(drive: RunDrive, key: str | None = None) -> bool:
    """Open the next round of the search; False, and the search has ended, if there is none.

    With agents it is theirs, else the proposer fills it. `key` is a caller's name for the round.
    """
    state, rounds = drive.state(), drive.search.store.reader.rounds()
    if not rounds:
        drive.search.store.rounds.open(Opening(0, "start", (drive.search.start,)))
        return True
    # Only where single steps have closed a round beyond a limit: a round of the loop's own says so.
    stop = drive.limit_reached()
    if stop is None:
        try:
            opening = _next_opening(drive, key)
            if opening is not None:
                drive.search.store.rounds.open(opening)
                return True
            stop = _exhausted(drive)
        except BudgetSpent as spent:
            stop = "budget", str(spent)
    drive.search.store.rounds.close(state.beam, stop)
    return False


def finish_open(drive: RunDrive, judge: Judge) -> None:
    """Evaluate what the open round still has, select, and close it."""
    number = drive.state().round
    spent = write_branches(drive, number)
    if spent is None:
        take_apart(drive, number)
    _resolve_ties(drive)
    stop = judge(drive) if spent is None else ("budget", str(spent))
    drive.search.store.rounds.close(drive.select(), stop)


def pending_reflection(drive: RunDrive) -> RoundRow | None:
    """Return the round of agents that has ended and was not thought about yet."""
    last = drive.last_round()
    is_due = (
        last is not None
        and last.kind == "agents"
        and last.reflection_sha is None
        and drive.search.agents is not None
        and drive.state().settings.search.agent == "full"
        and drive.state().settings.search.agent == "full"
        and not drive.state().round_open
        and drive.state().stop_reason != "budget"
    )
    return last if is_due else None


def reflect_on(drive: RunDrive, finished: RoundRow) -> None:
    """Keep what a round has taught; where that cannot be paid any more the search has ended."""
    state = drive.state()
    if drive.search.agents is not None:
        try:
            reflect(drive, drive.search.agents, finished.number)
        except BudgetSpent as spent:
            drive.search.store.rounds.close(state.beam, ("budget", str(spent)))


def sweep(drive: RunDrive) -> tuple[Proposal, ...]:
    """Return what the proposer would try next that is not known yet; () for no idea."""
    room = drive.room(drive.state().settings.search.sweep_size)
    return drive.fresh(drive.search.proposer.propose(drive.population(), room))[:room]


def _next_opening(drive: RunDrive, key: str | None) -> Opening | None:
    if drive.search.agents is not None:
        follows = drive.follows_trajectories
        opening = plan_rollouts(drive) if follows else plan_round(drive, drive.search.agents)
        return None if opening is None else replace(opening, step=key)
    proposals = sweep(drive)
    number = drive.state().round + 1
    return Opening(number, "sweep", proposals, step=key) if proposals else None


def _exhausted(drive: RunDrive) -> Stop:
    if drive.follows_trajectories:
        return "rounds", ended(drive)
    return "exhausted", "the proposer has no further candidate"


def _resolve_ties(drive: RunDrive) -> None:
    """Measure again, and longer, whoever is too close to another to say who stays.

    Every candidate at most once, until nobody is left: so it ends the same, however often it was
    interrupted.
    """
    drive.evaluations.drain("tie")
    settings = drive.state().settings.search
    while drive.spent_time() is None and (ties := find_ties(drive.members(), settings)):
        drive.search.store.queue.add(ties, "tie")
        drive.evaluations.drain("tie")
