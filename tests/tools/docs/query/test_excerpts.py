"""The part of a document that is quoted."""

import pytest

from kopt.tools.docs.query.quoting import excerpt
from kopt.tools.docs.visible_text import estimated_tokens, shown

BODY = "\n".join(f"line {number} of the text" for number in range(100)).replace(
    "line 60 of", "line 60 of griddepcontrol"
)


def test_a_short_document_is_quoted_whole() -> None:
    part = excerpt(BODY, ["griddepcontrol"], 10_000)
    assert (part.text, part.first_line, part.left_out_lines) == (BODY, 0, 0)


def test_the_lines_around_the_match_are_quoted() -> None:
    part = excerpt(BODY, ["griddepcontrol"], 60)
    lines = part.text.split("\n")
    assert "griddepcontrol" in part.text
    assert lines == BODY.split("\n")[part.first_line : part.first_line + len(lines)]
    assert len(lines) + part.left_out_lines == 100


def test_without_a_match_the_beginning_is_quoted() -> None:
    assert excerpt(BODY, ["nowhere"], 60).first_line == 0


@pytest.mark.parametrize("budget", [10, 50, 200, 1000])
@pytest.mark.parametrize("body", [BODY, "x" * 50_000, "ä" * 9000, "日本 " * 3000, "\n" * 5000])
def test_a_quotation_stays_within_its_budget(body: str, budget: int) -> None:
    assert estimated_tokens(excerpt(body, ["x"], budget).text) <= budget


def test_a_long_line_is_cut_around_the_match() -> None:
    part = excerpt("a " * 5000 + "griddepcontrol" + " b" * 5000, ["griddepcontrol"], 100)
    assert "griddepcontrol" in part.text
    assert part.text.startswith("…")
    assert part.text.endswith("…")


@pytest.mark.parametrize("letter", ["\x1b", "\0", "\x07", "\u202e", "\u2066", "\u200b", "\x9b"])
def test_what_a_terminal_obeys_is_replaced(letter: str) -> None:
    assert shown(f"a{letter}b\n\tc") == "a\N{REPLACEMENT CHARACTER}b\n\tc"


@pytest.mark.parametrize(
    "letter",
    "\u034f\u115f\u1160\u17b4\u180b\u2800\u3164\ufe00\ufe0f\uffa0\U000e0041\U000e0100\U000e01ef",
)
def test_letters_that_nothing_draws_are_replaced(letter: str) -> None:
    assert shown(f"a{letter}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_ordinary_letters_of_any_script_stay() -> None:
    assert shown("für 日本 µs ≤ │ 🙂 한글 é") == "für 日本 µs ≤ │ 🙂 한글 é"
