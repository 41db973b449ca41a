"""Cutting facts: the size holds whatever comes, nothing is left out silently, pages have it all."""

from typing import Any

import pytest

from kopt.tools.facts.fitting import (
    CONCISE_TOKENS,
    PAGE_TOKENS,
    Facts,
    Listing,
    cleaned,
    fitted,
    page,
    tokens,
)
from kopt.tools.facts.wording import Quoted, QuotedLines
from support.quick_cases import first_quick

REST = "job_wait with detail=full"


def numbered(count: int, text: str = "x" * 100) -> Listing:
    return Listing(tuple({"number": n, "text": Quoted(text)} for n in range(count)), most=5)


def test_short_facts_are_shown_whole_without_a_word_about_a_rest() -> None:
    facts = fitted({"status": "passed", "rows": numbered(3)}, REST)
    assert [row["number"] for row in facts["rows"]] == [0, 1, 2]
    assert set(facts) == {"status", "rows"}


def test_long_listing_shows_its_beginning_and_says_how_many_are_left_out() -> None:
    facts = fitted({"rows": numbered(200)}, REST)
    assert [row["number"] for row in facts["rows"]] == [0, 1, 2, 3, 4]
    assert facts["left_out"] == {"rows": "195 of 200"}
    assert facts["rest"] == REST


@pytest.mark.parametrize(
    "facts",
    [
        {"rows": numbered(200, "y" * 5000), "more": {"deep": numbered(50, "z" * 5000)}},
        {"text": "x" * 1_000_000},
        {"block": QuotedLines("line\n" * 100_000)},
        {"block": QuotedLines("x" * 1_000_000)},
        {f"field_{n}": "x" * 1000 for n in range(20)},
        {"rows": Listing(("\\" * 2000,) * 30, most=30)},
        {"rows": Listing(('"' * 2000,) * 30, most=30)},
        {"rows": Listing((Quoted("\u202e" * 2000),) * 30, most=30)},
    ],
)
def test_concise_facts_fit_whatever_they_hold(facts: Facts) -> None:
    shown = fitted(facts, REST)
    assert tokens(shown) <= CONCISE_TOKENS
    assert set(facts) <= set(shown)
    assert "left_out" in shown or "more" in str(shown)


def test_most_important_item_of_each_listing_stays() -> None:
    facts = fitted({"a": numbered(9, "a" * 400), "b": numbered(9, "b" * 400)}, REST)
    assert facts["a"][0]["number"] == facts["b"][0]["number"] == 0


def pages(facts: Facts) -> list[Facts]:
    found: list[Facts] = []
    offset: int | None = 0
    while offset is not None:
        shown, following = page(facts, offset)
        assert following is None or following > offset
        found.append(shown)
        offset = following
    return found


@pytest.mark.parametrize("text", first_quick(["x" * 100, "x" * 1_900, "漢" * 900, 'q"\\' * 600], 2))
def test_pages_together_have_every_item_once_and_in_order(text: str) -> None:
    facts = {"status": "passed", "a": numbered(90, text), "in": {"b": numbered(40, text)}}
    found = pages(facts)
    assert [row["number"] for one in found for row in one["a"]] == list(range(90))
    assert [row["number"] for one in found for row in one["in"]["b"]] == list(range(40))
    assert all(one["status"] == "passed" for one in found)
    assert all(tokens(one) <= PAGE_TOKENS * 1.25 for one in found)
    assert len(found) > 1


def test_page_behind_the_last_one_is_empty_and_ends() -> None:
    shown, following = page({"rows": numbered(3)}, 77)
    assert (shown["rows"], following) == ([], None)


def test_facts_without_listings_are_one_page() -> None:
    assert page({"status": "passed"}, 0) == ({"status": "passed"}, None)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.23456789, 1.235), (0.000123456, 0.0001235), (float("inf"), "inf"), (float("nan"), "nan")],
)
def test_numbers_have_the_digits_that_mean_something(value: float, shown: Any) -> None:
    assert fitted({"a": value}, REST) == {"a": shown}
    assert page({"a": value}, 0) == ({"a": shown}, None)


def test_cleaning_cuts_nothing() -> None:
    text = "first line\n" + "x" * 100_000
    assert cleaned({"a": [text], "b": "\x1b"}) == {"a": [text], "b": "\N{REPLACEMENT CHARACTER}"}
