"""What a phrase says about a chunk: by field, by length, by kind."""

import pytest

from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.postings import PhraseFinder, term_shares
from kopt.tools.docs.records import Chunk, Kind
from kopt.tools.docs.weights import KIND_PRIOR

PADDING = " ".join(f"padding{number}" for number in range(600))


def _entry(
    named: str = "one", place: str = "file", body: str = "", kind: Kind = "kernel"
) -> tuple[Kind, str]:
    """Return the kind of a chunk and its terms, field by field."""
    chunk = Chunk(
        source="vllm",
        path="csrc/one.cu",
        title=named,
        symbol=named,
        kind=kind,
        language="cuda",
        start_line=1,
        end_line=2,
        body=body,
    )
    return kind, entry_of(chunk, named, place, b"").fields


@pytest.fixture
def shares() -> dict[str, dict[int, float]]:
    entries = [
        _entry(body="zebra"),
        _entry(body=f"zebra {PADDING}"),
        _entry(named="zebra"),
        _entry(place="zebra"),
        _entry(place=f"zebra {PADDING}"),
        _entry(body="zebra", kind="host"),
        _entry(body="striped zebra"),
        _entry(body="zebra striped"),
        _entry(named="top_p"),
    ]
    found: dict[str, dict[int, float]] = {}
    finder = PhraseFinder(["zebra strip"])
    for number, (kind, fields) in enumerate(entries, start=1):
        for phrase, share in term_shares(kind, fields.split("\n"), finder):
            found.setdefault(phrase, {})[number] = share
    return found


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
