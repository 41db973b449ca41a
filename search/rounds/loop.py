"""A whole search: rounds of candidates until nothing is gained or left to spend, then the proof.

The loop keeps nothing that is not in the store; `rounds/advance.py` says what comes next.
"""

from collections.abc import Callable

from kopt.search.records.run_state import Event, RunState

from .advance import advance
from .drive import RunDrive, Search
from .search_round import judge_search


def run_search(search: Search, on_event: Callable[[Event], None] | None = None) -> RunState:
    """Drive the run in `search.store` to its end and return its final state.

    Every finished evaluation and every answered call is committed at once. A finished run is
    returned as it is.

    Raises:
        KeyboardInterrupt: The user stopped it; the run is paused and can be resumed.
        KoptError: This machine cannot evaluate, or no model can be asked; the run is paused
            likewise.
    """
    search.store.subscribe(on_event)
    drive = RunDrive(search)
    with drive.pausing():
        drive.memory.begin()
        if search.agents is not None and not drive.state().is_finished:
            search.agents.roles()  # what they lack is told before anything is evaluated
        while not drive.state().is_finished:
            advance(drive, judge_search)
    return drive.state()
