"""Whom a run tells what it does while it is driven."""

from collections.abc import Callable
from dataclasses import dataclass

from kopt.search.records.run_state import Event


@dataclass(frozen=True)
class RunTeller:
    """What takes the events of a run and the lines beside them, from any thread."""

    on_event: Callable[[Event], None]
    """Every event, after it was committed."""
    say: Callable[[str], None]
    """What goes on besides the events, e.g. what the first timing waits for."""
