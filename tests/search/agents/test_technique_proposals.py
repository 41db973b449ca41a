"""What is worth trying in a state without techniques: entries of few words and little weight."""

import json
from pathlib import Path
from typing import Any

import pytest

from kopt.search.agents.state_questions import MOST_PROPOSALS, propose_techniques
from kopt.search.knowledge.edits import AddEntry, AddTechnique
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply
from kopt.search.store.taught import MemoryUpdate
from support.agent_cases import means
from support.learning_cases import NEW_STATE, technique_question
from support.scripted_desk import desk, failure, reply, says

NEW = {
    "id": "pair_sums",
    "family": "reduction",
    "category": "latency",
    "description": "sums in pairs",
}


def answer(*techniques: str, new: tuple[dict[str, Any], ...] = ()) -> ModelReply:
    proposals = [{"technique": one, "gain": 0.1, "reason": "it waits"} for one in techniques]
    return says(json.dumps({"proposals": proposals, "new_techniques": new}))


def proposed(home: Path, *script: ModelReply | CallFailed) -> MemoryUpdate:
    return propose_techniques(means(desk(*script), home), technique_question())


def test_known_techniques_become_entries_of_the_state(tmp_path: Path) -> None:
    found = proposed(tmp_path, answer("warp_reduce", "wide_loads", "warp_reduce"))
    entries = [one for one in found.edits if isinstance(one, AddEntry)]
    assert [(one.state, one.techniques) for one in entries] == [
        (NEW_STATE, ("warp_reduce",)),
        (NEW_STATE, ("wide_loads",)),
    ]
    assert all(one.weight < 1.0 and one.author == "model" for one in entries)


def test_new_technique_comes_before_its_entry_and_only_if_it_is_proposed(tmp_path: Path) -> None:
    unwanted = {**NEW, "id": "odd_sums"}
    found = proposed(tmp_path, answer("pair_sums", new=(NEW, unwanted)))
    first, second = found.edits
    assert isinstance(first, AddTechnique) and first.technique.id == "pair_sums"
    assert isinstance(second, AddEntry) and second.techniques == ("pair_sums",)


@pytest.mark.parametrize("new", [(), ({**NEW, "family": "magic"},)])
def test_technique_that_cannot_be_is_dropped_with_the_reason(
    tmp_path: Path, new: tuple[dict[str, Any], ...]
) -> None:
    found = proposed(tmp_path, answer("pair_sums", "wide_loads", new=new))
    assert [one.techniques for one in found.edits if isinstance(one, AddEntry)] == [("wide_loads",)]
    assert found.dropped and all(one.startswith("pair_sums: ") for one in found.dropped)


def test_only_the_first_few_are_taken(tmp_path: Path) -> None:
    new = tuple({**NEW, "id": f"sums_{number}"} for number in range(MOST_PROPOSALS + 3))
    found = proposed(tmp_path, answer(*(one["id"] for one in new), new=new))
    assert len(found.edits) == 2 * MOST_PROPOSALS


@pytest.mark.parametrize(
    "script",
    [
        (says("loads"), says("loads")),
        (answer(), answer()),
        (reply("refusal", refusal="no"),),
        (failure("us"),),
    ],
)
def test_without_a_usable_answer_nothing_is_proposed(
    tmp_path: Path, script: tuple[ModelReply | CallFailed, ...]
) -> None:
    found = proposed(tmp_path, *script)
    assert found.edits == () and found.why
