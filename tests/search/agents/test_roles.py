"""The roles together: coder, combiner and fixer by way of the desk that a run has."""

import json
from pathlib import Path

import pytest

from kopt.search.agents.agent_context import AgentContext
from kopt.search.agents.roles import ModelRoles
from kopt.search.agents.views import Documents, FailedCandidate, GaveUp, WrittenCandidate
from kopt.search.models.model import ModelReply, ModelRequest
from support.agent_cases import (
    MEMBERS,
    START,
    WIDE,
    WRONG,
    agent_tools,
    branch_task,
    briefing,
    means,
    round_view,
    wrong_check,
)
from support.built_docs import copy_docs
from support.call_ledgers import desk_for, open_ledger
from support.model_requests import PlayedModel
from support.scripted_desk import desk, reply, says, submits, uses

MADE = START.replace("128", "512")


def test_branch_that_refines_asks_the_coder_and_a_merge_the_combiner(tmp_path: Path) -> None:
    scripted = desk(submits(MADE), submits(MADE))
    roles = ModelRoles(means(scripted, tmp_path))
    assert roles.write(branch_task()) == WrittenCandidate(MADE, "wider loads")
    roles.write(branch_task(id="r5/b0", lineage="combine", parents=(MEMBERS[1], MEMBERS[3])))
    assert [one.id for one in scripted.asked] == ["r2/b0/coder/0", "r5/b0/combiner/0"]
    assert [one.role for one in scripted.asked] == ["coder", "combiner"]


@pytest.mark.parametrize("source", [WIDE, f"\n{WIDE}\n"])
def test_parent_handed_in_as_a_candidate_is_turned_away(source: str, tmp_path: Path) -> None:
    roles = ModelRoles(means(desk(submits(source), submits(MADE)), tmp_path))
    assert roles.write(branch_task()) == WrittenCandidate(MADE, "wider loads")


def test_failed_candidate_handed_in_again_is_turned_away(tmp_path: Path) -> None:
    scripted = desk(submits(WRONG), submits(MADE))
    failure = FailedCandidate(MEMBERS[2], "failed", Documents(checks={2: wrong_check()}))
    written = ModelRoles(means(scripted, tmp_path)).mend(branch_task(), failure, 3)
    assert written == WrittenCandidate(MADE, "wider loads")
    assert [one.id for one in scripted.asked] == ["r2/b0/fix3/0", "r2/b0/fix3/1"]


def test_failure_without_a_check_document_is_told_by_its_summary(tmp_path: Path) -> None:
    scripted = desk(submits(MADE))
    ModelRoles(means(scripted, tmp_path)).mend(
        branch_task(), FailedCandidate(MEMBERS[2], "failed"), 1
    )
    assert "incorrect: row 3 is wrong" in scripted.asked[0].messages[0]["content"][0]["text"]


def test_tool_that_is_used_is_one_of_the_run(tmp_path: Path, built_docs: Path) -> None:
    scripted = desk(uses(("search_docs", {"query": "uint4 load"})), submits(MADE))
    ModelRoles(means(scripted, copy_docs(built_docs, tmp_path))).write(branch_task())
    assert "location: " in scripted.told[0][0]["content"]


def test_failing_branch_leaves_its_siblings_alone(tmp_path: Path) -> None:
    roles = ModelRoles(means(desk(reply("refusal", refusal="no"), submits(MADE)), tmp_path))
    assert isinstance(roles.write(branch_task(id="r2/b0")), GaveUp)
    assert isinstance(roles.write(branch_task(id="r2/b1")), WrittenCandidate)


def test_answered_calls_of_a_run_are_not_made_again(tmp_path: Path) -> None:
    """The desk and the ledger are those of a run: a branch that ran before is only read."""

    def script(request: ModelRequest) -> ModelReply:
        if request.role == "planner":
            return says(json.dumps({"hypotheses": []}))
        return uses(("submit_candidate", {"source": ""})) if request.id.endswith("/0") else made

    made = submits(MADE)
    with open_ledger(tmp_path) as ledger:
        first = PlayedModel(script)
        roles = ModelRoles(AgentContext(desk_for(first, ledger), briefing(), agent_tools(tmp_path)))
        written, planned = roles.write(branch_task()), roles.plan(round_view())
        second = PlayedModel(script)
        again = ModelRoles(
            AgentContext(desk_for(second, ledger), briefing(), agent_tools(tmp_path))
        )
        assert (again.write(branch_task()), again.plan(round_view())) == (written, planned)
        assert first.asked == ["r2/b0/coder/0", "r2/b0/coder/1", "r2/plan/0", "r2/plan/1"]
        assert second.asked == [] and isinstance(written, WrittenCandidate)
