"""Children that drive a run and die after one of its events, for drivers that try many of them.

Physical syncs are left out: `kill -9` cannot tell them from none.
"""

import gc
import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any

from kopt.search.records.run_state import Event


class FatalEvent:
    """Counts events; after the one that is fatal the process is killed. 0: none is."""

    def __init__(self, fatal: int) -> None:
        """Begin to count."""
        self.seen = 0
        self._fatal = fatal

    def __call__(self, _: Event) -> None:
        """Count one; never returns from the fatal one."""
        self.seen += 1
        if self.seen == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class _UnsyncedConnection(sqlite3.Connection):
    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *parameters)


def leave_out_syncs() -> None:
    """Have this process and its children write without physical syncs."""
    real_connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: real_connect(*a, factory=_UnsyncedConnection, **k)  # type: ignore[assignment]
    os.fsync = _no_sync


def undisturbed(drive: Callable[[FatalEvent], None]) -> int:
    """Drive in this process, and return the events that it saw.

    What a process reads once, children that are forked from now on have read already.
    """
    events = FatalEvent(0)
    drive(events)
    gc.freeze()  # or each child copies what its first collection of garbage touches
    return events.seen


def forked(drive: Callable[[FatalEvent], None], fatal: int) -> tuple[bool, int]:
    """Drive in a child that dies after event `fatal`; whether it did, and the events it saw."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            events = FatalEvent(fatal)
            drive(events)
            os.write(write, str(events.seen).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        seen = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise SystemExit(f"the child failed at event {fatal}")
    return killed, int(seen or 0)


def _no_sync(fd: object) -> None:
    """Stand in for a physical sync."""
