"""What a phrase says about a chunk: by field, by length, by kind."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.index_file import Sheet, fill
from kopt.tools.docs.indexing.postings import phrase_shares
from kopt.tools.docs.records import Chunk, Kind
from kopt.tools.docs.weights import KIND_PRIOR

WORDS = ("zebra", "zebra strip", "nucleus", "top_p")
PADDING = " ".join(f"padding{number}" for number in range(600))


def _sheet(
    number: int, named: str = "one", place: str = "file", body: str = "", kind: Kind = "kernel"
) -> Sheet:
    chunk = Chunk(
        source="vllm",
        path=f"csrc/{number}.cu",
        title=named,
        symbol=named,
        kind=kind,
        language="cuda",
        start_line=1,
        end_line=2,
        body=body,
    )
    return Sheet(chunk, entry_of(chunk, named, place, b""))


@pytest.fixture
def shares() -> Iterator[dict[str, dict[int, float]]]:
    sheets = [
        _sheet(1, body="zebra"),
        _sheet(2, body=f"zebra {PADDING}"),
        _sheet(3, named="zebra"),
        _sheet(4, place="zebra"),
        _sheet(5, place=f"zebra {PADDING}"),
        _sheet(6, body="zebra", kind="host"),
        _sheet(7, body="striped zebra"),
        _sheet(8, body="zebra striped"),
        _sheet(9, named="top_p"),
    ]
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, {}, sheets)
        found = {text: dict(phrase_shares(connection, text)) for text in WORDS}
    yield found


def test_every_chunk_that_has_the_word_has_a_share(shares: dict[str, dict[int, float]]) -> None:
    assert list(shares["zebra"]) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_same_word_says_less_about_a_longer_text(shares: dict[str, dict[int, float]]) -> None:
    assert shares["zebra"][2] < shares["zebra"][1]


def test_a_name_says_more_than_a_text(shares: dict[str, dict[int, float]]) -> None:
    assert shares["zebra"][3] > shares["zebra"][1]


def test_the_length_of_a_place_does_not_count(shares: dict[str, dict[int, float]]) -> None:
    assert shares["zebra"][5] == pytest.approx(shares["zebra"][4])


def test_the_kind_is_in_the_share(shares: dict[str, dict[int, float]]) -> None:
    assert shares["zebra"][6] == pytest.approx(KIND_PRIOR["host"] * shares["zebra"][1])


def test_a_phrase_is_found_where_its_words_follow_each_other(
    shares: dict[str, dict[int, float]],
) -> None:
    assert list(shares["zebra strip"]) == [8]


def test_what_a_name_means_is_found_and_says_less_than_the_name(
    shares: dict[str, dict[int, float]],
) -> None:
    assert list(shares["nucleus"]) == [9]
    assert shares["nucleus"][9] < shares["top_p"][9]
