"""A caller's steps on a run of agents: the same rounds as the loop's, in turns with it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import SetupError
from kopt.config.search_settings import load_search_settings
from kopt.config.settings import ClaudeAccess
from kopt.search.agents.agent_context import AgentContext
from kopt.search.models.model import Model
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.reports.run_report import view_run
from kopt.search.runs import model_roles
from kopt.search.runs.parts import RunPlace
from kopt.search.runs.run import drive_run, reopen_run
from support.scripted_agents import ScriptedRoles, evaluate_line, scripted_model
from support.scripted_steps import KERNEL, Steps, candidate, reference
from support.scripted_steps import answer as answer_step

pytestmark = pytest.mark.slow  # whole runs with agents
LINES = {"r1/b0/coder/0": "reduction 4.0", "r2/b0/coder/0": "reduction 3.0"}
Interrupt = Callable[[str], None]


class NoDocuments:
    """Finds nothing to read."""

    def __init__(self, *_: object) -> None:
        """Take what a reader takes."""

    def documents(self, *_: object) -> str:
        """Return nothing."""
        return "no document fits"


def _answer(job: EvaluationJob) -> Evaluation:
    is_line = "\n" not in job.source
    return evaluate_line(job) if is_line else answer_step(job)


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Steps of a home with a key, whose model says what a script says."""
    taken = Steps(tmp_path, _answer)
    taken.install(monkeypatch.setattr)
    _give_key(taken)
    model = scripted_model(lambda call: LINES.get(call, f"algebra wrong // {call}"))

    def roles(means: AgentContext) -> ScriptedRoles:
        return ScriptedRoles(means.client)  # type: ignore[arg-type]  # the run's own desk

    stand_ins: dict[str, Any] = {
        "open_model": _opens(model),
        "ModelRoles": roles,
        "DocumentSearch": NoDocuments,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(model_roles, name, stand_in)
    return taken


def _opens(model: Model) -> Callable[..., Model]:
    def open_model(*_: object) -> Model:
        return model

    return open_model


def _give_key(steps: Steps, key: str | None = "k") -> None:
    access = None if key is None else ClaudeAccess(api_key=key)
    steps.settings = replace(steps.settings, claude=access)
    steps.site = replace(steps.site, settings=steps.settings)


def _kinds(steps: Steps) -> list[str]:
    with view_run("run-", steps.settings) as (reader, _):
        return [one.kind for one in reader.rounds()]


def test_step_without_candidates_is_a_round_of_agents(steps: Steps) -> None:
    result = steps.take(kernel=KERNEL)
    assert _kinds(steps) == ["start", "agents"]
    assert (result.round, result.status) == (1, "paused")
    assert result.beam[0].label == result.candidates[0].label == "r1b0"


def _dollars(steps: Steps) -> float | None:
    with view_run("run-", steps.settings) as (reader, _):
        return reader.state().settings.budget.usd


def test_models_cost_no_more_than_the_settings_say_where_no_dollars_are_named(
    steps: Steps,
) -> None:
    limit = load_search_settings().budget_usd
    assert limit is not None
    _give_key(steps, None)
    steps.take(kernel=KERNEL)
    assert _dollars(steps) is None  # nobody is paid
    _give_key(steps)
    steps.take(budget=Budget(seconds=3600))
    assert _dollars(steps) == limit
    steps.take(budget=Budget(usd=limit + 1))
    assert _dollars(steps) == limit + 1
    with reopen_run("run-", steps.settings, Budget(evaluations=90)) as store:
        assert store.reader.state().settings.budget == Budget(evaluations=90, usd=limit)


def test_loop_and_steps_take_turns_on_one_run(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    steps.take(candidate(3.5, "by hand"))
    steps.take()
    assert _kinds(steps) == ["start", "agents", "step", "agents"]
    with reopen_run("run-", steps.settings) as store:
        assert drive_run(store, RunPlace(steps.site)).status == "done"
        members = store.reader.members()
        assert {m.proposer for m in members} >= {"start", "coder", "caller", "fixer"}
    assert "combine" in _kinds(steps)


def test_step_without_a_key_goes_on_with_the_sweep(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    _give_key(steps, None)
    steps.take()
    assert _kinds(steps) == ["start", "agents", "sweep"]


def test_interrupted_round_of_agents_is_finished_by_a_step_with_a_key_only(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(call: str) -> str:
        if call == "r1/b1/coder/0":
            raise KeyboardInterrupt
        return LINES.get(call, f"algebra wrong // {call}")

    with monkeypatch.context() as patch:
        patch.setattr(model_roles, "open_model", _opens(scripted_model(interrupt)))
        with pytest.raises(KeyboardInterrupt):
            steps.take(kernel=KERNEL)
    _give_key(steps, None)
    with pytest.raises(SetupError, match="round 1 was begun with a model"):
        steps.take()
    _give_key(steps)
    assert steps.take().round == 1
    assert _kinds(steps) == ["start", "agents"]
    with view_run("run-", steps.settings) as (reader, _):
        assert all(one.state != "open" for one in reader.branches())
        assert reader.members()[0].source == reference()


def test_callers_candidates_need_no_key_and_no_model(steps: Steps) -> None:
    _give_key(steps, None)
    steps.take(candidate(3.5), kernel=KERNEL)
    assert _kinds(steps) == ["start", "step"]
