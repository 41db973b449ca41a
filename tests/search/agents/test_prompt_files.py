"""Prompts are checked as they are loaded: a file and what fills it cannot drift apart."""

from importlib.resources import files

import pytest

from kopt.config.errors import SetupError
from kopt.search.agents.prompt import PLACEHOLDERS, checked_prompt, render_prompt


def test_every_prompt_is_a_file_and_every_file_a_prompt() -> None:
    folder = files("kopt.search").joinpath("prompts")
    assert {entry.name for entry in folder.iterdir()} == {f"{name}.md" for name in PLACEHOLDERS}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Round {{round}} of {{rounds}}.", "unknown placeholder rounds"),
        ("Round.", "no placeholder round"),
        ("Round {{round}} {{Round}}.", "double braces"),
        ("Round {{round}} }}.", "double braces"),
        ("Round {{ round }}.", "double braces"),
    ],
)
def test_wrong_placeholder_is_named_at_load(text: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        checked_prompt("plan", text, frozenset({"round"}))


def test_empty_prompt_is_refused_at_load() -> None:
    with pytest.raises(SetupError, match="empty"):
        checked_prompt("plan", " \n", frozenset())


def test_value_is_not_looked_at_for_placeholders() -> None:
    text = render_prompt("repair_answer", {"mistakes": "{{mistakes}} and {{tool_calls}}"})
    assert "{{mistakes}} and {{tool_calls}}" in text


@pytest.mark.parametrize("values", [{}, {"mistakes": "a", "more": "b"}, {"other": "a"}])
def test_values_that_are_not_those_of_the_prompt_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="repair_answer"):
        render_prompt("repair_answer", values)
