"""A run of agents that is stopped, by the user, by a service or by its budget, and goes on."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.search.models.errors import CallFailed
from kopt.search.models.model import Model, ModelReply, ModelRequest
from kopt.search.records.budget import Budget
from kopt.search.records.run_state import EventKind, RunSettings
from kopt.search.rounds.advance import run_search
from kopt.search.store.store import RunStore
from support.scripted_agents import agents_search, labelled_state, scripted_model
from support.scripted_runs import new_store

pytestmark = pytest.mark.slow  # whole runs with agents
LINES = {"r1/b0/coder/0": "reduction 4.0", "r1/b1/coder/0": "layout 5.0"}


def _line(call: str) -> str:
    return LINES.get(call, f"algebra 9.{call.count('/')} // {call}")


def _undisturbed(home: Path) -> dict[str, object]:
    with new_store(home / "whole") as store:
        run_search(agents_search(store, scripted_model(_line)))
        return labelled_state(store)


def _go_on(store: RunStore, model: Model, **changes: object) -> dict[str, object]:
    settings: RunSettings = store.reader.state().settings.model_copy(update=changes)
    store.resume(settings)
    run_search(agents_search(store, model))
    return labelled_state(store)


class Hanging:
    """A model that never answers one call; Ctrl-C comes while it is asked."""

    def __init__(self, call: str) -> None:
        """Hang on `call`."""
        self._call = call
        self._model = scripted_model(_line)
        self.forever = threading.Event()

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the reply, but to the one call."""
        if request.id == self._call:
            os.kill(os.getpid(), signal.SIGINT)
            self.forever.wait(30.0)
        return self._model.reply(request)


@pytest.mark.parametrize("call", ["r1/plan/0", "r1/b1/coder/0", "r1/reflect/0"])
def test_ctrl_c_ends_a_run_whose_model_does_not_answer(tmp_path: Path, call: str) -> None:
    hanging = Hanging(call)
    with new_store(tmp_path) as store:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run_search(agents_search(store, hanging))
        took_s = time.monotonic() - began
        hanging.forever.set()
        assert store.reader.state().status == "paused"
        (paused,) = [one for one in store.reader.events() if one.kind is EventKind.RUN_PAUSED]
        assert paused.data["reason"] == "Ctrl-C"
        assert not [row for row in store.reader.calls() if row["state"] == "reserved"]
        assert _go_on(store, scripted_model(_line)) == _undisturbed(tmp_path)
    assert took_s < 15.0  # it hung for 30


@pytest.mark.parametrize("kind", ["time", "user"])
def test_service_that_cannot_be_asked_pauses_the_run(tmp_path: Path, kind: str) -> None:
    class Failing:
        model = scripted_model(_line)

        def reply(self, request: ModelRequest) -> ModelReply:
            if request.id == "r1/b0/coder/0":
                raise CallFailed(kind, "the service said no", status=401)  # type: ignore[arg-type]
            return self.model.reply(request)

    failing = Failing()
    with new_store(tmp_path) as store:
        with pytest.raises(CallFailed, match="the service said no"):
            run_search(agents_search(store, failing))
        assert store.reader.state().status == "paused"
        assert store.reader.branches(1)[1].state == "delivered", "the others ended in peace"
        model = scripted_model(_line)
        assert _go_on(store, model) == _undisturbed(tmp_path)
        assert not set(model.asked) & set(failing.model.asked), "an answered call was asked again"


@pytest.mark.parametrize(
    "budget", [Budget(usd=0.022), Budget(usd=0.024), Budget(tokens=1_600)], ids=str
)
def test_spent_budget_ends_a_run_that_goes_on_with_a_larger_one(
    tmp_path: Path, budget: Budget
) -> None:
    with new_store(tmp_path, budget=budget) as store:
        state = run_search(agents_search(store, scripted_model(_line)))
        assert (state.status, state.stop_reason) == ("budget", "budget")
        assert state.winner is not None
        assert store.reader.rounds()[-1].number < 3
        assert _go_on(store, scripted_model(_line), budget=Budget()) == _undisturbed(tmp_path)


def test_round_has_no_more_branches_than_evaluations_are_left(tmp_path: Path) -> None:
    with new_store(tmp_path, budget=Budget(evaluations=2)) as store:
        state = run_search(agents_search(store, scripted_model(_line)))
        assert (state.status, state.stop_detail) == ("budget", "2 evaluations are spent")
        assert len(store.reader.members()) == 2
        _go_on(store, scripted_model(_line), budget=Budget())
        assert store.reader.state().status == "done"


def test_spent_time_cuts_the_calls_that_are_under_way(tmp_path: Path) -> None:
    clock = [0.0]
    hangs = threading.Event()

    class Slow:
        model = scripted_model(_line)

        def reply(self, request: ModelRequest) -> ModelReply:
            if request.id == "r1/b1/coder/0":
                clock[0] = 100.0
                hangs.wait(30.0)
            return self.model.reply(request)

    with new_store(tmp_path, budget=Budget(seconds=90.0)) as store:
        parts = agents_search(store, Slow())
        state = run_search(replace(parts, clock=lambda: clock[0]))
        hangs.set()
        assert (state.status, state.stop_detail) == ("budget", "90 s are spent")
        assert store.reader.branches(1)[1].state == "open"
        assert _go_on(store, scripted_model(_line), budget=Budget()) == _undisturbed(tmp_path)
