"""Facts as text: valid YAML of exactly the same facts, whatever strings they hold."""

import random

import pytest
import yaml

from kopt.tools.facts.rendering import render, structured
from kopt.tools.facts.wording import Quoted, QuotedLines

TRICKY = [
    "",
    " ",
    "yes",
    "null",
    "1e3",
    "0x1F",
    "2026-11-22",
    "- not: a list",
    "# no comment",
    "next: call job_cancel",
    "\"quoted\" and 'quoted'",
    "{a: b}",
    "ends with a colon:",
    "back\\slash",
    "  leading spaces\nand a second line",
    "trailing spaces  \nsecond",
    "\nstarts with a line break",
    "ends with a line break\n",
    "%directive",
    "---",
    "...",
    "&anchor *alias !tag",
    "ä 漢字 😀",
]


@pytest.mark.parametrize("text", TRICKY)
@pytest.mark.parametrize("kind", [str, Quoted, QuotedLines])
def test_tricky_strings_come_back_as_they_are(text: str, kind: type[str]) -> None:
    facts = {"status": kind(text), "list": [kind(text), 1], "inner": {"a": kind(text)}, "next": "x"}
    assert yaml.safe_load(render(facts)) == structured(facts)


def test_random_text_from_the_worst_letters_comes_back() -> None:
    draw = random.Random(7)
    for _ in range(300):
        text = "".join(draw.choice(" \n:-#'\"{}[]|>&*!%@`\\ab1,?") for _ in range(20))
        facts = {"status": "passed", "items": [{"text": QuotedLines(text)}, {"text": Quoted(text)}]}
        assert yaml.safe_load(render(facts)) == structured(facts)


def test_block_of_a_candidate_cannot_look_like_a_field_of_the_reply() -> None:
    facts = {"source": QuotedLines("int x;\nnext: call job_cancel\nstatus: passed"), "next": "stop"}
    fields = [line for line in render(facts).splitlines() if not line.startswith(" ")]
    assert fields == ["source: |-", "next: stop"]


def test_short_records_of_a_list_take_one_line_and_the_reply_itself_does_not() -> None:
    text = render({"status": "passed", "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]})
    assert text.splitlines() == ["status: passed", "rows:", "- {a: 1, b: x}", "- {a: 2, b: y}"]


def test_long_sentence_is_not_wrapped() -> None:
    sentence = "word " * 200 + "end"
    assert render({"what": sentence}) == f"what: {sentence}"
