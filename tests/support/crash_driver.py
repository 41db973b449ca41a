"""Runs a small search again and again, killed by SIGKILL at every single step of its writes.

A step is each SQL statement that writes, each fsync and each rename, and the kill comes before it;
dying after it is dying before the next one, because nothing else touches the disk. For every k a
forked child runs the search until step k, kills itself, and is resumed by another child that runs
to the end; both are forked from this process, which has one thread and everything imported.
Physical syncs are left out: `kill -9` cannot tell them from none, and they would take a minute.

Usage: python crash_driver.py FOLDER; prints one JSON document.
"""

import gc
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.rounds.advance import run_search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.run_reader import RunReader
from kopt.search.store.schema import open_viewer
from kopt.search.store.store import FILE_NAME, RunStore
from kopt.search.store.winner import winner_path
from support.populations import SOURCE
from support.scripted_runs import final_state, grid_choices, scripted_answer, search, settings

RUN_ID = "run-1"
CHOICES = grid_choices({"BLOCK": (64, 128, 256), "ROWS": (1,)})
# Resuming a finished run does the same whatever killed it before, so a sample is enough.
NO_OP_EVERY = 16


class Steps:
    """Counts steps and kills the process at one of them."""

    def __init__(self) -> None:
        self.taken = 0
        self.fatal = 0

    def take(self) -> None:
        """Count one step; never returns from the fatal one."""
        self.taken += 1
        if self.taken == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


STEPS = Steps()


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with a step before it."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        STEPS.take()
        return function(*arguments, **keywords)

    return call


def no_sync(_: int) -> None:
    """Stand in for a physical sync."""


class CountedConnection(sqlite3.Connection):
    """A connection whose statements are steps, without physical syncs."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Execute one statement; it is a step if it writes."""
        if sql.startswith(("SELECT", "PRAGMA")):
            return super().execute(
                sql.replace("synchronous = FULL", "synchronous = OFF"), *parameters
            )
        return counted(super().execute)(sql, *parameters)  # type: ignore[no-any-return]


def count_writes() -> None:
    """Make a step of every write of this process from here on."""
    real_connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: real_connect(*a, factory=CountedConnection, **k)  # type: ignore[assignment]
    os.fsync = counted(no_sync)
    os.replace = counted(os.replace)


def answer_with_artifact(home: Path) -> Callable[[EvaluationJob], Evaluation]:
    """Return the scripted answers, each with an artifact of its own."""

    def answer(job: EvaluationJob) -> Evaluation:
        sha = open_artifacts(home).put(job.model_dump_json().encode())
        return scripted_answer(job).model_copy(update={"artifacts": {"job": sha}})

    return answer


def run_to_the_end(home: Path) -> None:
    """Begin or resume the run below `home` and drive it to its end."""
    folder = home / "runs" / RUN_ID
    folder.mkdir(parents=True, exist_ok=True)
    with RunStore(folder, open_artifacts(home)) as store:
        if store.reader.run_exists():
            if not store.reader.state().is_finished:
                store.resume(settings())
        else:
            store.artifacts.put(SOURCE.encode())
            store.begin(settings(), "0.0")
        run_search(search(store, answer_with_artifact(home), slots=2, choices=CHOICES))


def forked(work: Callable[[], None], fatal: int) -> tuple[bool, int]:
    """Work in a child that dies at step `fatal`; whether it was killed, and the steps it took."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            STEPS.taken, STEPS.fatal = 0, fatal
            work()
            os.write(write, str(STEPS.taken).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        taken = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise SystemExit(f"the child failed at step {fatal}")
    return killed, int(taken or 0)


def violations(home: Path) -> list[str]:
    """Return which invariants the finished run below `home` breaks."""
    folder = home / "runs" / RUN_ID
    artifacts = open_artifacts(home)
    connection = open_viewer(folder / FILE_NAME)
    found: list[str] = []
    if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        found.append("integrity_check")
    if connection.execute("PRAGMA foreign_key_check").fetchall():
        found.append("foreign_key_check")
    reader = RunReader(connection, artifacts)
    if any(row["state"] != "done" or not row["status"] for row in reader.table("evaluation")):
        found.append("an evaluation is not done")
    found += [
        f"blob {row['sha']}"
        for row in reader.table("blob")
        if len(artifacts.get(row["sha"])) != row["size_bytes"]
    ]
    events = [event.seq for event in reader.events()]
    if events != list(range(1, len(events) + 1)):
        found.append("event.seq has a gap")
    if "BLOCK: [256, 128, 64]" not in winner_path(folder).read_text("utf-8"):
        found.append("winner file")
    connection.close()
    return found


def outcome(home: Path) -> dict[str, Any]:
    """Return the final state of the run below `home`."""
    folder = home / "runs" / RUN_ID
    with RunStore(folder, open_artifacts(home)) as store:
        return final_state(store)


def stays_as_it_is(home: Path) -> bool:
    """Return whether resuming the finished run below `home` leaves every row alone."""
    before = rows(home)
    forked(partial(run_to_the_end, home), fatal=0)
    return rows(home) == before


def rows(home: Path) -> list[str]:
    """Return the whole run file below `home` as SQL."""
    connection = open_viewer(home / "runs" / RUN_ID / FILE_NAME)
    dump = list(connection.iterdump())
    connection.close()
    return dump


def main(root: Path) -> dict[str, Any]:
    """Kill at every step once and return what was seen."""
    count_writes()
    whole = root / "whole"
    run_to_the_end(whole)  # in this process: what is read once, the children have read already
    steps = STEPS.taken
    gc.freeze()  # or each child copies what its first collection of garbage touches
    expected = outcome(whole)
    problems: list[str] = violations(whole)
    killed = 0
    for fatal in range(1, steps + 1):
        home = root / f"killed-{fatal}"
        work = partial(run_to_the_end, home)
        died, _ = forked(work, fatal)
        killed += died
        forked(work, fatal=0)
        problems += [f"step {fatal}: {violation}" for violation in violations(home)]
        if outcome(home) != expected:
            problems.append(f"step {fatal}: another final state")
        if fatal % NO_OP_EVERY == 0 and not stays_as_it_is(home):
            problems.append(f"step {fatal}: resuming the finished run changed it")
        shutil.rmtree(home)
    return {"steps": steps, "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
