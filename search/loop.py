"""The beam loop: rounds of propose, evaluate, select, until nothing is gained or left to spend.

The loop keeps nothing that is not in the store: at every step it asks the store where the run
stands and does what comes next. A new run, a run that was killed, one that was given more budget
and one that single steps (`step.py`) have driven so far are therefore driven by the same code, and
a run with the same seed ends the same however often it was interrupted (time budgets excepted).
"""

from collections.abc import Callable

from .round_table import Opening
from .run_drive import RunDrive, Search
from .run_records import Event, RoundKind, RunState, StopReason
from .stopping import FinishedRound, stop_reason


def run_search(search: Search, on_event: Callable[[Event], None] | None = None) -> RunState:
    """Drive the run in `search.store` to its end and return its final state.

    Every finished evaluation is committed at once. A finished run is returned as it is.

    Raises:
        KeyboardInterrupt: The user stopped it; the run is paused and can be resumed.
        KoptError: This machine cannot evaluate at all; the run is paused likewise.
    """
    search.store.subscribe(on_event)
    drive = RunDrive(search)
    with drive.pausing():
        while not drive.state().is_finished:
            _advance(drive)
    return drive.state()


def _advance(drive: RunDrive) -> None:
    """Do the next thing: finish the open round, end the run, or open another round."""
    state = drive.state()
    if state.round_open:
        drive.evaluate("quick")
        drive.search.store.rounds.close(drive.select(), _reason_to_stop(drive))
    elif state.stop_reason is not None:
        drive.finish()
    else:
        _open_round(drive, state)


def _open_round(drive: RunDrive, state: RunState) -> None:
    store = drive.search.store
    # Only where single steps have closed a round beyond a limit: a round of the loop's own says so.
    limit = None if state.round < 0 else drive.limit_reached()
    proposals = () if limit else drive.propose()
    if proposals:
        kind: RoundKind = "start" if state.round < 0 else "sweep"
        store.rounds.open(Opening(state.round + 1, kind, proposals))
    else:
        exhausted: tuple[StopReason, str] = ("exhausted", "the proposer has no further candidate")
        store.rounds.close(state.beam, limit or exhausted)


def _reason_to_stop(drive: RunDrive) -> tuple[StopReason, str] | None:
    state = drive.state()
    finished = FinishedRound(state.round)
    return drive.limit_reached() or stop_reason(drive.members(), finished, state.settings.search)
