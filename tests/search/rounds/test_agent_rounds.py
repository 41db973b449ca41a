"""Rounds of agents: what they find, what a branch does, what their order cannot change."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.search.models.model import ModelReply, ModelRequest
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.run_state import EventKind
from kopt.search.rounds.advance import run_search
from support.scripted_agents import (
    NO_REPAIR,
    agents_search,
    evaluate_line,
    labelled_state,
    scripted_model,
)
from support.scripted_runs import new_store, search

pytestmark = pytest.mark.slow  # whole runs with agents

FIRST = {
    "r1/b0/coder/0": "reduction 4.0",
    "r1/b1/coder/0": "layout wrong",
    "r1/b1/fix1/0": "layout 6.0",
}


def _line(call: str) -> str:
    """Say a source that nobody else says, slower with every round, unless `FIRST` has one."""
    return FIRST.get(call, f"algebra 9.{call.count('/')} // {call}")


def test_agents_find_the_improvement_and_the_run_ends_with_its_winner(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        state = run_search(agents_search(store, scripted_model(_line)))
        assert (state.status, state.stop_reason) == ("done", "early_stop")
        assert state.winner is not None
        winner = store.reader.members()[state.winner]
        assert (winner.source, winner.label) == ("reduction 4.0", "r1b0")
        kinds = [one.kind for one in store.reader.rounds()]
        assert kinds == ["start", "agents", "agents", "combine"]


def test_failed_candidate_is_mended_by_the_fixer(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(agents_search(store, scripted_model(_line)))
        by_label = {member.label: member for member in store.reader.members()}
        mended = by_label["r1b1f1"]
        assert (mended.source, mended.lineage, mended.proposer) == ("layout 6.0", "fix", "fixer")
        assert mended.parents == (by_label["r1b1"].seq,)
        branch = store.reader.branches(1)[1]
        assert (branch.state, branch.candidate) == ("delivered", mended.seq)


def test_branch_that_cannot_be_mended_has_failed_and_the_run_has_not(tmp_path: Path) -> None:
    model = scripted_model(
        lambda call: "layout wrong" + f"// {call}" if "b1" in call else _line(call)
    )
    with new_store(tmp_path) as store:
        assert run_search(agents_search(store, model)).status == "done"
        branch = store.reader.branches(1)[1]
        assert (branch.state, branch.why) == ("failed", "row 3 is wrong")
        tries = [member for member in store.reader.members() if member.branch == "r1/b1"]
        settings = store.reader.state().settings.search
        assert len(tries) == 1 + settings.fix_attempts


def test_refusal_costs_one_branch(tmp_path: Path) -> None:
    model = scripted_model(lambda call: NO_REPAIR if call == "r1/b0/coder/0" else _line(call))
    with new_store(tmp_path) as store:
        assert run_search(agents_search(store, model)).status == "done"
        first, second = store.reader.branches(1)
        assert (first.state, first.candidate, first.why) == ("failed", None, "the model refused")
        assert second.state == "delivered"


def test_source_that_is_none_fails_its_branch(tmp_path: Path) -> None:
    model = scripted_model(lambda call: "" if call == "r1/b0/coder/0" else _line(call))
    with new_store(tmp_path) as store:
        run_search(agents_search(store, model))
        assert store.reader.branches(1)[0].why == "no source that could be compiled: it is empty"


def test_regression_goes_to_the_fixer_once(tmp_path: Path) -> None:
    model = scripted_model(lambda call: f"layout 9.0 // {call}")
    with new_store(tmp_path) as store:
        run_search(agents_search(store, model))
        asked = [call for call in model.asked if call.startswith("r1/b0")]
    assert asked == ["r1/b0/coder/0", "r1/b0/fix1/0"]


class InTurn:
    """A model whose replies to some calls come one after the other, in an order of the test's."""

    def __init__(self, order: Sequence[str]) -> None:
        """Reply to the calls of `order` in this order, to all others at once."""
        self._order = list(order)
        self._changed = threading.Condition()
        self._model = scripted_model(_line)

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the reply when it is its turn."""
        with self._changed:
            if request.id in self._order:
                assert self._changed.wait_for(lambda: self._order[0] == request.id, timeout=30.0)
                self._order.pop(0)
                self._changed.notify_all()
        return self._model.reply(request)


def test_order_of_the_branches_decides_nothing(tmp_path: Path) -> None:
    calls = ["r1/b0/coder/0", "r1/b1/coder/0"]
    ends: list[dict[str, object]] = []
    for name, order in (("run-1", calls), ("run-2", calls[::-1])):
        with new_store(tmp_path, name) as store:
            run_search(agents_search(store, InTurn(order)))
            ends.append(labelled_state(store))
    assert ends[0] == ends[1]


def test_candidate_is_evaluated_while_another_branch_still_writes(tmp_path: Path) -> None:
    evaluated = threading.Event()
    model = scripted_model(_line)

    class Slow:
        def reply(self, request: ModelRequest) -> ModelReply:
            if request.id == "r1/b1/coder/0":
                assert evaluated.wait(30.0), "the first branch was not evaluated meanwhile"
            return model.reply(request)

    def evaluate(job: EvaluationJob) -> Evaluation:
        if job.source == "reduction 4.0":
            evaluated.set()
        return evaluate_line(job)

    with new_store(tmp_path) as store:
        assert run_search(agents_search(store, Slow(), evaluate)).status == "done"


def test_every_round_is_thought_about_once(tmp_path: Path) -> None:
    model = scripted_model(_line)
    with new_store(tmp_path) as store:
        run_search(agents_search(store, model))
        kept = [one.number for one in store.reader.rounds() if one.reflection_sha is not None]
        events = [
            one.data["round"] for one in store.reader.events() if one.kind is EventKind.REFLECTED
        ]
    assert kept == events == [1, 2]
    assert [call for call in model.asked if "reflect" in call] == ["r1/reflect/0", "r2/reflect/0"]


def test_finished_run_asks_nobody(tmp_path: Path) -> None:
    model = scripted_model(_line)
    with new_store(tmp_path) as store:
        run_search(agents_search(store, model))
        asked = len(model.asked)
        run_search(agents_search(store, model))
        assert len(model.asked) == asked


def test_open_branches_need_a_model(tmp_path: Path) -> None:
    def stop(call: str) -> str:
        raise KeyboardInterrupt if "b1" in call else AssertionError

    model = scripted_model(lambda call: stop(call) if "b1" in call else _line(call))
    with new_store(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt):
            run_search(agents_search(store, model))
        store.resume(store.reader.state().settings)
        with pytest.raises(SetupError, match="round 1 was begun with a model"):
            run_search(search(store, evaluate_line))
        assert store.reader.state().status == "paused"
