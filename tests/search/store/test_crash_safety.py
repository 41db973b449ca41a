"""A run survives `kill -9` at any moment, and two processes do not disturb each other."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kopt.search.rounds.advance import run_search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from support.scripted_runs import final_state, new_store, search

pytestmark = pytest.mark.slow  # kill -9 at every write

nightly = pytest.mark.nightly
FIRST = [1, pytest.param(6, marks=nightly)]
"""Where every tenth event kills: `make test-all` and `make test-nightly` share them."""

SUPPORT = Path(__file__).resolve().parents[2] / "support"
TIME_LIMIT_S = 240.0


def _start(script: str, *words: object, **pipes: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", str(SUPPORT / script), *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT.parent)}
    return subprocess.Popen(command, env=environment, text=True, **pipes)


def _undisturbed(home: Path) -> dict[str, Any]:
    with new_store(home) as store:
        run_search(search(store))
        return final_state(store)


def _state(home: Path, run_id: str) -> dict[str, Any]:
    with RunStore(home / "runs" / run_id, open_artifacts(home)) as store:
        return final_state(store)


def test_kill_at_every_step_of_every_write_loses_nothing(tmp_path: Path) -> None:
    driver = _start("crash_driver.py", tmp_path, stdout=subprocess.PIPE)
    output, _ = driver.communicate(timeout=TIME_LIMIT_S)
    seen = json.loads(output)
    assert seen["problems"] == []
    assert seen["killed"] == seen["steps"] > 100


@pytest.mark.parametrize(
    ("named", "first"), [("keys", 1), pytest.param("keys", 2, marks=nightly), ("none", 1)]
)
def test_steps_taken_again_after_a_kill_at_any_event_lose_and_double_nothing(
    tmp_path: Path, named: str, first: int
) -> None:
    driver = _start("step_crash_driver.py", tmp_path, named, first, stdout=subprocess.PIPE)
    output, _ = driver.communicate(timeout=TIME_LIMIT_S)
    seen = json.loads(output)
    assert seen["problems"] == []
    assert seen["killed"] == seen["tried"] > 10


@pytest.mark.parametrize("first", FIRST)
def test_run_of_agents_killed_anywhere_ends_the_same_and_pays_nothing_twice(
    tmp_path: Path, first: int
) -> None:
    driver = _start("agents_crash_driver.py", tmp_path, first, stdout=subprocess.PIPE)
    output, _ = driver.communicate(timeout=TIME_LIMIT_S)
    seen = json.loads(output)
    assert seen["problems"] == []
    assert seen["killed"] == seen["tried"] > 20


@pytest.mark.parametrize(
    ("strategy", "first"), [("maic_rl", 1), ("beam", 1), pytest.param("beam", 6, marks=nightly)]
)
def test_run_that_remembers_killed_anywhere_draws_and_learns_the_same(
    tmp_path: Path, strategy: str, first: int
) -> None:
    driver = _start("memory_crash_driver.py", tmp_path, strategy, first, stdout=subprocess.PIPE)
    output, _ = driver.communicate(timeout=TIME_LIMIT_S)
    seen = json.loads(output)
    assert seen["problems"] == []
    assert seen["killed"] == seen["tried"] > 10


def test_run_killed_at_random_events_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    draw = random.Random(7)
    for _ in range(4):
        process = _start("scripted_process.py", tmp_path / "home", "run-1", stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(draw.randint(2, 9)):
            process.stdout.readline()
        process.kill()
        process.communicate(timeout=TIME_LIMIT_S)
    last = _start("scripted_process.py", tmp_path / "home", "run-1", stdout=subprocess.DEVNULL)
    assert last.wait(TIME_LIMIT_S) == 0
    assert _state(tmp_path / "home", "run-1") == _undisturbed(tmp_path / "whole")


def test_two_runs_of_one_home_at_once_end_as_if_alone(tmp_path: Path) -> None:
    names = ("run-1", "run-2")
    processes = [
        _start("scripted_process.py", tmp_path / "home", name, stdout=subprocess.DEVNULL)
        for name in names
    ]
    assert [process.wait(TIME_LIMIT_S) for process in processes] == [0, 0]
    alone = _undisturbed(tmp_path / "alone")
    assert [_state(tmp_path / "home", name) for name in names] == [alone, alone]


def test_second_process_on_a_run_is_told_which_one_holds_it(tmp_path: Path) -> None:
    with new_store(tmp_path):
        second = _start("scripted_process.py", tmp_path, "run-1", stderr=subprocess.PIPE)
        _, message = second.communicate(timeout=TIME_LIMIT_S)
    assert second.returncode == 2
    assert f"run run-1 is being worked on by process {os.getpid()}" in message
