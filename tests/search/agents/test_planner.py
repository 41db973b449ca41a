"""A plan is always made: from a good answer, a clumsy one, and from none."""

import json
from pathlib import Path
from typing import Any

import pytest

from kopt.search.agents.planner import plan
from kopt.search.agents.plans import Plan
from kopt.search.agents.views import RoundView
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply
from support.agent_cases import CROSS, NEW, REFINE, hypothesis, means, round_view
from support.scripted_desk import ScriptedDesk, desk, failure, reply, says, uses

# What of a hypothesis the planner does not say.
KNOWN_BEFORE = {"slot", "parents", "state", "predicted_gain", "predicted_interval"}


def idea(slot: str, **fields: Any) -> dict[str, Any]:
    known = hypothesis().model_dump(mode="json", exclude=KNOWN_BEFORE)
    return {"slot": slot, **known, **fields}


def answer(*ideas: dict[str, Any]) -> ModelReply:
    return says(json.dumps({"hypotheses": ideas}))


GOOD = answer(idea("refine-r1b0"), idea("cross-r1b0-r1b1f1", family="register_caching"))


@pytest.fixture
def planned(tmp_path: Path) -> Any:
    """Return a function that plans with a script and gives the plan and its desk."""

    def call(*script: ModelReply | CallFailed, view: RoundView | None = None) -> Any:
        scripted = desk(*script)
        made: Plan = plan(means(scripted, tmp_path), view or round_view())
        return made, scripted

    return call


def test_good_answer_fills_every_slot_with_its_parents(planned: Any) -> None:
    made, scripted = planned(GOOD)
    assert [(one.slot, one.parents) for one in made.hypotheses] == [
        (REFINE.id, (1,)),
        (CROSS.id, (1, 3)),
    ]
    assert (made.origin, made.why, len(scripted.asked)) == ("model", "", 1)


def test_answer_in_a_fence_is_understood(planned: Any) -> None:
    _, scripted = planned(says(f"```json\n{GOOD.text}\n```\n"))
    assert len(scripted.asked) == 1


def test_answer_in_another_order_fills_the_same_slots(planned: Any) -> None:
    made, _ = planned(answer(idea(CROSS.id), idea(REFINE.id)))
    assert [one.slot for one in made.hypotheses] == [REFINE.id, CROSS.id]


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (says("I think that..."), "no JSON"),
        (says("[" * 100_000), "no JSON"),
        (says("[]"), "hypotheses"),
        (says(json.dumps({"hypotheses": 3})), "hypotheses"),
        (answer(idea(REFINE.id)), CROSS.id),
        (answer(idea(REFINE.id, family="magic"), idea(CROSS.id)), "magic"),
        (answer(idea(REFINE.id, expected_gain="much"), idea(CROSS.id)), "expected_gain"),
        (says('{"hypotheses": [{"slot": "refine-r1b0"}]}'), "family"),
    ],
)
def test_clumsy_answer_is_repaired_once(planned: Any, first: ModelReply, said: str) -> None:
    made, scripted = planned(first, GOOD)
    assert made.origin == "model" and len(scripted.asked) == 2
    assert said in scripted.told[0][-1]["text"]


def test_mistakes_of_any_number_and_length_are_told_briefly(planned: Any) -> None:
    long_name = "obey " * 50_000
    entries = [{long_name: 1}, *[{"slot": 5}] * 3_000]
    clumsy = says(json.dumps({"hypotheses": entries}))
    made, scripted = planned(clumsy, clumsy)
    told = scripted.asked[1].messages[-1]["content"][0]["text"]
    assert made.origin == "fallback"
    assert max(len(made.why), len(told)) < 1_500


def test_call_of_a_tool_that_is_not_there_is_answered(planned: Any) -> None:
    _, scripted = planned(uses(("compile", {})), GOOD)
    assert [block["type"] for block in scripted.told[0]] == ["tool_result", "text"]


@pytest.mark.parametrize(
    "script",
    [
        (says("no"), says("no")),
        (reply("max_tokens"), reply("max_tokens")),
        (reply("refusal", refusal="cyber"),),
        (reply("model_context_window_exceeded"),),
        (reply("bored"),),
        (failure("us"),),
        tuple([reply("pause_turn", {"type": "text", "text": "."})] * 6),
    ],
)
def test_without_a_usable_answer_every_slot_is_filled_by_rule(
    planned: Any, script: tuple[ModelReply | CallFailed, ...]
) -> None:
    made, _ = planned(*script)
    assert [one.slot for one in made.hypotheses] == [REFINE.id, CROSS.id]
    assert made.origin == "fallback" and made.why


def test_only_the_missing_slot_is_filled_by_rule(planned: Any) -> None:
    partial = answer(idea(REFINE.id, name="mine"))
    made, _ = planned(partial, partial)
    assert made.hypotheses[0].name == "mine"
    assert made.hypotheses[1].evidence != made.hypotheses[0].evidence
    assert made.origin == "fallback" and CROSS.id in made.why


@pytest.mark.parametrize("kind", ["time", "user"])
def test_call_that_others_can_mend_is_raised(planned: Any, kind: str) -> None:
    with pytest.raises(CallFailed):
        planned(failure(kind))


def test_surplus_becomes_the_reserve_as_far_as_it_is_wanted(planned: Any) -> None:
    first = round_view(slots=(NEW,), reserve_wanted=2)
    ideas = [idea("", name=f"spare {number}") for number in range(4)]
    made, _ = planned(answer(idea("new-1"), *ideas), view=first)
    assert [(one.slot, one.name, one.parents) for one in made.reserve] == [
        ("", "spare 0", (0,)),
        ("", "spare 1", (0,)),
    ]


def test_new_slots_of_one_family_are_repaired(planned: Any) -> None:
    two = (NEW, NEW.model_copy(update={"id": "new-2"}))
    same = answer(idea("new-1"), idea("new-2"))
    distinct = answer(idea("new-1"), idea("new-2", family="layout"))
    made, scripted = planned(same, distinct, view=round_view(slots=two))
    assert "share a family" in scripted.told[0][-1]["text"]
    assert [one.family for one in made.hypotheses] == ["ilp_unroll", "layout"]


def test_texts_of_any_length_and_gains_of_any_size_are_tamed(planned: Any) -> None:
    wild = idea(REFINE.id, name="n\n" * 9_000, hypothesis="h" * 90_000, expected_gain=1e300)
    made, _ = planned(answer(wild, idea(CROSS.id)))
    one = made.hypotheses[0]
    assert len(one.name) < 150 and "\n" not in one.name
    assert len(one.hypothesis) <= 2_000 and one.expected_gain == 10.0


def test_resumed_plan_asks_nothing_again(tmp_path: Path) -> None:
    whole = desk(says("no"), GOOD)
    expected = plan(means(whole, tmp_path), round_view())
    resumed = ScriptedDesk([], whole.calls)
    assert plan(means(resumed, tmp_path), round_view()) == expected
    assert list(whole.calls) == ["r2/plan/0", "r2/plan/1"]
