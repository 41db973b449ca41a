"""`agent: minimal` and `profile: cycles_only`: what is left out is left out everywhere."""

from pathlib import Path

import pytest

from kopt.search.agents.roles import ModelRoles
from kopt.search.agents.views import Documents, FailedCandidate, WrittenCandidate
from kopt.search.models.model import ModelReply, ModelRequest
from support.agent_cases import MEMBERS, START, branch_task, means, round_view, wrong_check
from support.estimate_cases import EstimateCase
from support.made_profiles import profile_of
from support.prompt_texts import is_reviewed, text_of
from support.scripted_desk import ScriptedDesk, desk, reply, submits, uses

MADE = START.replace("128", "512")
PROFILES = {1: profile_of(EstimateCase())}
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
