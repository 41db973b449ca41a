"""Which of equally near states it is: what a model says if it is one of them, else the first."""

import json
from pathlib import Path

import pytest

from kopt.search.agents.state_questions import decide_state
from kopt.search.agents.views import StateDecision
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply
from support.agent_cases import means
from support.learning_cases import BYTES_STATE, LATENCY_STATE, state_question
from support.scripted_desk import desk, failure, reply, says


def answer(state: str) -> ModelReply:
    return says(json.dumps({"state": state, "reason": "it waits"}))


def decided(home: Path, *script: ModelReply | CallFailed) -> StateDecision:
    return decide_state(means(desk(*script), home), state_question())


def test_model_decides_between_the_states_that_it_is_shown(tmp_path: Path) -> None:
    assert decided(tmp_path, answer(BYTES_STATE)) == StateDecision(BYTES_STATE, "model", "it waits")


def test_other_state_is_told_once_and_then_taken_back(tmp_path: Path) -> None:
    assert decided(tmp_path, answer("bliss"), answer(BYTES_STATE)).state == BYTES_STATE


@pytest.mark.parametrize(
    "script",
    [
        (answer("bliss"), answer("bliss")),
        (says("the first"), says("the first")),
        (reply("refusal", refusal="no"),),
        (failure("us"),),
    ],
)
def test_without_a_usable_answer_the_first_stands_with_the_reason(
    tmp_path: Path, script: tuple[ModelReply | CallFailed, ...]
) -> None:
    found = decided(tmp_path, *script)
    assert (found.state, found.decided_by) == (LATENCY_STATE, "rule") and found.reason
