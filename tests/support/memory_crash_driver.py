"""Runs a search that remembers again and again, killed by SIGKILL after one event after another.

As `agents_crash_driver.py`, for trajectories and for a beam that is advised: besides candidates and
calls, what the run has drawn, what it has learned and what it has told the shared base must be
those of a run that was never interrupted.

Usage: python memory_crash_driver.py FOLDER beam|maic_rl FIRST; FIRST is the first event that kills.
Prints one JSON document.
"""

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.records.run_state import RunSettings
from kopt.search.rounds.advance import run_search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from support.agents_crash_driver import problems_of
from support.event_kills import FatalEvent, forked, leave_out_syncs, undisturbed
from support.model_requests import PlayedModel
from support.populations import SOURCE
from support.scripted_agents import labelled_state, scripted_model
from support.scripted_runs import settings
from support.technique_world import World, world_search

EVERY = {"maic_rl": 5, "beam": 10}
"""A beam has 150 events, trajectories half as many."""
WORLD = World(
    {"vector_loads": 2.0, "warp_shuffles": 0.5, "one_barrier": 0.0, "row_in_registers": 1.3},
    planned=("vector_loads", "warp_shuffles", "row_in_registers"),
)


def small(strategy: str) -> SearchSettings:
    """Return the settings of a small search that has all kinds of moments."""
    found = load_search_settings().with_beam(2, 2)
    size = {"trajectories": 3, "steps": 2, "most_steps": 3, "at_once": 2, "update_every": 2}
    rollouts = found.maic_rl.model_copy(update=size)
    changes = {"strategy": strategy, "maic_rl": rollouts, "fix_attempts": 1}
    return found.model_copy(update=changes)


def noting_model(home: Path) -> PlayedModel:
    """Return a model that writes down what it is asked."""

    def line(call: str) -> str:
        with (home / "asked").open("a") as file:
            file.write(f"{call}\n")
        return f"algebra 9.{call.count('/')} // {call}"

    return scripted_model(line)


def drive(home: Path, run: RunSettings, events: FatalEvent) -> None:
    """Drive the run below `home` to its end, or die after the fatal event."""
    folder = home / "runs" / "run-1"
    folder.mkdir(parents=True, exist_ok=True)
    with RunStore(folder, open_artifacts(home)) as store:
        store.subscribe(events)
        if not store.reader.run_exists():
            store.artifacts.put(SOURCE.encode())
            store.begin(run, "0.0")
        elif not store.reader.state().is_finished:
            store.resume(run)
        run_search(world_search(store, WORLD, noting_model(home)), events)


def remembered(home: Path) -> dict[str, object]:
    """Return all that the run below `home` knows, which no kill may change."""
    with RunStore(home / "runs" / "run-1", open_artifacts(home)) as store:
        members, reader = store.reader.members(), store.reader

        def told(sample: Sample) -> tuple[object, ...]:
            _, seq, *rest = sample.id.split("/")
            names = (members[int(seq)].label, *rest, sample.state, sample.techniques)
            return (*names, sample.outcome, sample.measured, sample.predicted, sample.previous)

        with KnowledgeStore(home / "knowledge") as shared:
            everybodys = [told(sample) for sample in shared.samples()]
        return {
            "run": labelled_state(store),
            # Their parents are numbers, which depend on the order of the branches.
            "hypotheses": [one.hypothesis | {"parents": ()} for one in reader.branches()],
            "samples": [told(sample) for sample in reader.samples()],
            "shared": sorted(everybodys, key=str),
            "updates": {number: len(one.edits) for number, one in reader.updates().items()},
        }


def main(root: Path, strategy: str, first: int) -> dict[str, Any]:
    """Kill after every `EVERY`th event from `first` once and return what was seen."""
    leave_out_syncs()
    run = settings(search=small(strategy))
    whole = root / "whole"
    events = undisturbed(partial(drive, whole, run))
    expected = remembered(whole)
    with RunStore(whole / "runs" / "run-1", open_artifacts(whole)) as store:
        state = labelled_state(store)
    problems: list[str] = []
    killed = 0
    tried = range(first, events + 1, EVERY[strategy])
    for fatal in tried:
        home = root / f"killed-{fatal}"
        killed += forked(partial(drive, home, run), fatal)[0]
        forked(partial(drive, home, run), 0)
        found = problems_of(home, state)
        now = remembered(home)
        found += [f"another {key}" for key in expected if now[key] != expected[key]]
        problems += [f"event {fatal}: {problem}" for problem in found]
        shutil.rmtree(home)
    return {"tried": len(tried), "killed": killed, "problems": problems}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
