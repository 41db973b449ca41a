"""Hypotheses by rule: for every kind of slot, no family twice among the new ones.

`agent: minimal` and `profile: cycles_only`: what is left out is left out everywhere.
"""

from pathlib import Path

import pytest

from kopt.search.advice.suggestions import Suggestion
from kopt.search.agents.roles import ModelRoles
from kopt.search.agents.rule_plans import fill_by_rule
from kopt.search.agents.slots import Slot
from kopt.search.agents.views import Documents, FailedCandidate, WrittenCandidate
from kopt.search.models.model import ModelReply, ModelRequest
from support.agent_cases import (
    CROSS,
    MEMBERS,
    NEW,
    REFINE,
    START,
    branch_task,
    hypothesis,
    means,
    round_view,
    wrong_check,
)
from support.estimate_cases import EstimateCase
from support.made_profiles import profile_of
from support.prompt_texts import is_reviewed, text_of
from support.scripted_desk import ScriptedDesk, desk, reply, submits, uses

VIEW = round_view()
TRAIT = Suggestion(
    kind="trait", text="Loads are narrow.", parents=(1,), families=("vectorization",)
)


def test_what_limits_the_parent_is_taken_first() -> None:
    (one,) = fill_by_rule(VIEW, (REFINE,), (TRAIT,), ())
    assert (one.slot, one.family, one.hypothesis) == (
        REFINE.id,
        "vectorization",
        "Loads are narrow.",
    )


def test_note_on_the_parent_is_taken_as_what_limits_it_is() -> None:
    note = TRAIT.model_copy(update={"kind": "note", "families": ("pass_fusion",)})
    (one,) = fill_by_rule(VIEW, (REFINE,), (note, TRAIT), ())
    assert one.family == "pass_fusion"


def test_same_suggestion_fills_one_slot_only() -> None:
    twice = (REFINE, REFINE.model_copy(update={"id": "expand-r1b0-1", "kind": "expand"}))
    one, two = fill_by_rule(VIEW, twice, (TRAIT,), ())
    assert one.hypothesis != two.hypothesis and two.parents == (1,)


def test_suggestion_for_another_parent_is_not_taken() -> None:
    elsewhere = TRAIT.model_copy(update={"parents": (3,)})
    (one,) = fill_by_rule(VIEW, (REFINE,), (elsewhere,), ())
    assert one.hypothesis != "Loads are narrow."


def test_new_slots_get_families_of_their_own() -> None:
    many = tuple(NEW.model_copy(update={"id": f"new-{n}"}) for n in range(1, 9))
    taken = (hypothesis(family="thread_utilization"),)
    families = [one.family for one in fill_by_rule(VIEW, many, (), taken)]
    assert len(set(families)) == 8 and "thread_utilization" not in families


def test_merge_keeps_the_family_and_the_order_of_its_parents() -> None:
    (one,) = fill_by_rule(VIEW, (CROSS,), (), ())
    assert (one.family, one.parents) == ("vectorization", (1, 3))


def test_retry_is_filled_by_what_mends_it() -> None:
    retry = Slot(id="retry-r1b1", kind="retry", lineage="fix", parents=(2,), why="promising")
    mend = Suggestion(kind="fix", text="Fix r1b1.", parents=(2,), families=("reduction",))
    (one,) = fill_by_rule(VIEW, (retry,), (TRAIT, mend), ())
    assert (one.hypothesis, one.family) == ("Fix r1b1.", "reduction")


def test_more_new_slots_than_families_are_still_filled() -> None:
    many = tuple(NEW.model_copy(update={"id": f"new-{n}"}) for n in range(30))
    assert len(list(fill_by_rule(VIEW, many, (), ()))) == 30


MADE = START.replace("128", "512")
PROFILES = {1: profile_of(EstimateCase(suspects=("memory_latency", "barriers")))}
TASK = branch_task(documents=Documents(profiles=PROFILES))


def roles(home: Path, *script: ModelReply, **search: object) -> tuple[ModelRoles, ScriptedDesk]:
    scripted = desk(*script)
    return ModelRoles(means(scripted, home, **search)), scripted


def whole_text(request: ModelRequest) -> str:
    return "\n".join((request.system[0].text, text_of(request)))


def test_minimal_round_is_planned_without_a_call(tmp_path: Path) -> None:
    minimal, scripted = roles(tmp_path, agent="minimal")
    made = minimal.plan(round_view())
    assert [(one.slot, one.parents) for one in made.hypotheses] == [
        ("refine-r1b0", (1,)),
        ("cross-r1b0-r1b1f1", (1, 3)),
    ]
    assert (made.origin, scripted.asked) == ("model", [])


def test_minimal_prompts_are_those_that_were_reviewed(tmp_path: Path) -> None:
    minimal, scripted = roles(tmp_path, submits(MADE), submits(MADE), agent="minimal")
    assert isinstance(minimal.write(TASK), WrittenCandidate)
    wrong = FailedCandidate(MEMBERS[2], "failed", Documents(checks={2: wrong_check()}))
    assert isinstance(minimal.mend(TASK, wrong, 1), WrittenCandidate)
    first, second = scripted.asked
    assert is_reviewed("minimal_coder.md", text_of(first))
    assert is_reviewed("minimal_fixer.md", text_of(second))


def test_minimal_author_sees_code_and_profile_and_nothing_of_the_run(tmp_path: Path) -> None:
    minimal, scripted = roles(tmp_path, submits(MADE), agent="minimal")
    minimal.write(TASK)
    text = whole_text(scripted.asked[0])
    assert "profile of r1b0" in text and "16 bytes an access gain 2.2x" not in text
    assert "two vectors in flight" not in text


def test_minimal_author_can_only_hand_in(tmp_path: Path) -> None:
    minimal, scripted = roles(
        tmp_path, uses(("compile", {"source": MADE})), submits(MADE), agent="minimal"
    )
    assert isinstance(minimal.write(TASK), WrittenCandidate)
    assert [tool.name for tool in scripted.asked[0].tools] == ["submit_candidate"]
    assert "no uses of tools are left" in scripted.told[0][0]["content"]


@pytest.mark.slow  # a compile, a run and a profile
def test_full_author_is_shown_the_profile_and_the_resources(tmp_path: Path) -> None:
    full, scripted = roles(tmp_path, submits(MADE), reply("refusal", refusal="no"))
    full.write(TASK)
    full.plan(round_view(documents=Documents(profiles=PROFILES)))
    assert "profile of r1b0" in text_of(scripted.asked[0])
    assert "registers: 32" in text_of(scripted.asked[1])


@pytest.mark.parametrize("asked", ["write", "mend", "plan", "reflect"])
def test_cycles_only_shows_no_profile_and_no_resource(tmp_path: Path, asked: str) -> None:
    blind, scripted = roles(tmp_path, reply("refusal", refusal="no"), profile="cycles_only")
    view = round_view(documents=Documents(profiles=PROFILES))
    match asked:
        case "write":
            blind.write(TASK)
        case "mend":
            slow = FailedCandidate(MEMBERS[3], "regressed", Documents(profiles=PROFILES))
            blind.mend(TASK, slow, 1)
        case "plan":
            blind.plan(view)
        case _:
            blind.reflect(view)
    text = text_of(scripted.asked[0])
    assert "profile of" not in text and "registers: " not in text
    assert "us" in text


@pytest.mark.parametrize("name", ["profile", "sass_excerpt"])
def test_cycles_only_has_no_tool_that_profiles(tmp_path: Path, name: str) -> None:
    call = uses((name, {"source": MADE}))
    blind, scripted = roles(tmp_path, call, submits(MADE), profile="cycles_only")
    blind.write(TASK)
    offered = {tool.name for tool in scripted.asked[0].tools}
    assert offered == {"search_docs", "compile", "check_correctness", "submit_candidate"}
    assert "there is no such tool" in scripted.told[0][0]["content"]
