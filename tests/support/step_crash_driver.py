"""Takes a fixed row of steps again and again, killed by SIGKILL after every single event.

Every transaction of a run ends in an event, so these are all states that a kill can leave (that a
transaction itself survives one is what crash_driver.py shows). For every k a forked child takes the
steps until the k-th event and kills itself; another child then takes the same steps again.
Physical syncs are left out: `kill -9` cannot tell them from none.

Usage: python step_crash_driver.py FOLDER keys|none; with `keys` each step is named by its caller.
Prints one JSON document.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from kopt.kernels.status import Status
from kopt.search.step_request import StepHooks
from kopt.search.store.run_records import Event
from support.scripted_steps import KERNEL, Steps, candidate

GIVEN = (
    (candidate(5.0, "a", hypothesis="first"), candidate(Status.INCORRECT)),
    (),  # the proposer's
    (),  # out of ideas: the full check
    (candidate(4.0, "b", parents=(1,)),),  # opens the run again
    (),  # ends it again
)
# Without a key only a kill between the end of a round and its pause differs: a sample is enough.
EVERY = 3


class UnsyncedConnection(sqlite3.Connection):
    """A connection without physical syncs."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Execute one statement."""
        return super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *parameters)


def no_sync(fd: object) -> None:
    """Stand in for a physical sync."""


def take_all(home: Path, fatal: int, named: bool) -> int:
    """Take every step; die after event `fatal`. Return the number of events."""
    seen = 0

    def count(_: Event) -> None:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    steps = Steps(home)
    steps.install()
    for number, given in enumerate(GIVEN):
        is_begun = any(steps.settings.runs.glob("*/run.sqlite"))
        fields: dict[str, Any] = {"key": str(number)} if named else {}
        if number == 0 and (named or not is_begun):
            fields["kernel"] = KERNEL
        steps.take(*given, hooks=StepHooks(on_event=count), **fields)
    return seen


def forked(home: Path, fatal: int, named: bool) -> tuple[bool, int]:
    """Take the steps in a child; whether it was killed, and the events that it saw."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(write, str(take_all(home, fatal, named)).encode())
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


def main(root: Path, named: bool) -> dict[str, Any]:
    """Kill after every event once and return what was seen."""
    real_connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: real_connect(*a, factory=UnsyncedConnection, **k)  # type: ignore[assignment]
    os.fsync = no_sync
    _, events = forked(root / "whole", 0, named)
    expected = Steps(root / "whole").rows()
    problems: list[str] = []
    tried = range(1, events + 1, 1 if named else EVERY)
    killed = 0
    for fatal in tried:
        home = root / f"killed-{fatal}"
        killed += forked(home, fatal, named)[0]
        before = Steps(home).rows()
        forked(home, 0, named)
        after = Steps(home).rows()
        if [row[:6] for row in after[: len(before)]] != [row[:6] for row in before]:
            problems.append(f"event {fatal}: a candidate was lost or changed")
        if sorted(map(str, (row[2:4] for row in after))) != sorted(
            map(str, (row[2:4] for row in expected))
        ):
            problems.append(f"event {fatal}: other candidates than undisturbed")
        if named and after != expected:
            problems.append(f"event {fatal}: another final state")
        shutil.rmtree(home)
    return {"tried": len(tried), "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2] == "keys")))
