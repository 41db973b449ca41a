"""A run's file that was edited before its winner is promoted."""

from dataclasses import replace
from typing import Any

import pytest

from kopt.search.records.members import Member
from kopt.search.rounds.final_check import unlike_its_check
from support.bench_results import check
from support.populations import member, passed


def _member(**fields: Any) -> Member:
    known: dict[str, Any] = {"source_sha": "a" * 64, "tune": {"BLOCK": 128}}
    return replace(member(1, passed(4.0)), **{**known, **fields})


CHECK = check().model_copy(update={"candidate": "a" * 64, "tune": {"BLOCK": 128, "HINT": 1}})


def test_a_row_as_it_was_checked_is_promoted() -> None:
    assert unlike_its_check(_member(), CHECK) is None
    assert unlike_its_check(_member(), None) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source_sha": "b" * 64}, "its source is bbbbbbbbbbbb, and its full check was of aaaa"),
        ({"tune": {"BLOCK": 256}}, "BLOCK is 256, and 128 in its full check"),
        ({"tune": {"BLOCK": 128, "MORE": 1}}, "MORE is 1, and None in its full check"),
    ],
)
def test_an_edited_row_is_noticed(change: dict[str, Any], said: str) -> None:
    assert said in (unlike_its_check(_member(**change), CHECK) or "")
