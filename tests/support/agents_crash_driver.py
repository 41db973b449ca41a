"""Runs a search with agents again and again, killed by SIGKILL after one event after another.

Every transaction of a run ends in an event, so these are all states that a kill can leave (that a
transaction itself survives one is what crash_driver.py shows). For every k a forked child drives
the run until its k-th event and kills itself; another child then drives it to its end. Both write
down which calls the model was really asked.

Usage: python agents_crash_driver.py FOLDER FIRST; FIRST is the first event that kills.
Prints one JSON document.
"""

import json
import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from kopt.config.search_settings import load_search_settings
from kopt.search.rounds.advance import run_search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from support.event_kills import FatalEvent, forked, leave_out_syncs, undisturbed
from support.model_requests import PlayedModel
from support.populations import SOURCE
from support.scripted_agents import agents_search, labelled_state, scripted_model
from support.scripted_runs import settings

# Of 150 events: all kinds of moments, at a bearable price.
EVERY = 10
PROOF = 14
"""The last events: one finalist is checked, read and rejected, the next one wins."""
LINES = {
    "r1/b0/coder/0": "reduction 4.0",
    "r1/b1/coder/0": "layout wrong",
    "r1/b1/fix1/0": "layout 6.0",
    "r2/b0/coder/0": "reduction 3.0",
}


SETTINGS = settings(search=load_search_settings().with_beam(2, 2))


def noting_model(home: Path) -> PlayedModel:
    """Return the model of the script, which writes down what it is asked."""

    def line(call: str) -> str:
        with (home / "asked").open("a") as file:
            file.write(f"{call}\n")
        if "/verify/r2b0/" in call:
            return "reject it skips a row"
        return LINES.get(call, f"algebra 9.{call.count('/')} // {call}")

    return scripted_model(line)


def drive(home: Path, events: FatalEvent) -> None:
    """Drive the run below `home` to its end, or die after the fatal event."""
    folder = home / "runs" / "run-1"
    folder.mkdir(parents=True, exist_ok=True)
    with RunStore(folder, open_artifacts(home)) as store:
        store.subscribe(events)
        if not store.reader.run_exists():
            store.artifacts.put(SOURCE.encode())
            store.begin(SETTINGS, "0.0")
        elif not store.reader.state().is_finished:
            store.resume(SETTINGS)
        run_search(agents_search(store, noting_model(home)), events)


def problems_of(home: Path, expected: dict[str, object]) -> list[str]:
    """Return what is wrong with the run below `home`, which was killed once."""
    found: list[str] = []
    with RunStore(home / "runs" / "run-1", open_artifacts(home)) as store:
        if labelled_state(store) != expected:
            found.append("another final state")
        calls = store.reader.calls()
    if any(row["state"] not in ("done", "unknown") for row in calls):
        found.append("an open call")
    done = Counter(row["id"].partition("#")[0] for row in calls if row["state"] == "done")
    lost = Counter(row["id"].partition("#")[0] for row in calls if row["state"] == "unknown")
    asked = Counter((home / "asked").read_text().split())
    found += [f"{call} answered {times} times" for call, times in done.items() if times > 1]
    found += [
        f"{call} asked {times} times"
        for call, times in asked.items()
        if times > done[call] + lost[call]
    ]
    return found


def main(root: Path, first: int) -> dict[str, Any]:
    """Kill after every `EVERY`th event from `first` and each of the last; return what was seen."""
    leave_out_syncs()
    whole = root / "whole"
    events = undisturbed(partial(drive, whole))
    with RunStore(whole / "runs" / "run-1", open_artifacts(whole)) as store:
        expected = labelled_state(store)
    problems: list[str] = []
    killed = 0
    tried = sorted({*range(first, events + 1, EVERY), *range(events - PROOF + 1, events + 1)})
    for fatal in tried:
        home = root / f"killed-{fatal}"
        killed += forked(partial(drive, home), fatal)[0]
        forked(partial(drive, home), 0)
        problems += [f"event {fatal}: {problem}" for problem in problems_of(home, expected)]
        shutil.rmtree(home)
    return {"tried": len(tried), "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
