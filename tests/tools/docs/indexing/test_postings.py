"""Sums of postings: the same with numpy and without, packed and not."""

import random
import sys
from array import array
from unittest.mock import patch

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.indexing.postings import (
    SHARE_STEP,
    Postings,
    best_scored,
    packed_postings,
    postings,
    unpacked_postings,
)
from kopt.tools.docs.query.search import search_documents
from kopt.tools.docs.records import SearchRequest
from kopt.tools.docs.vectors import vector_model
from support.written_index import function, write_library

WITHOUT_NUMPY = {"numpy": None}


def _random_postings(draw: random.Random) -> Postings:
    ids = sorted(draw.sample(range(1, 500), 200))
    return Postings(array("i", ids), bytes(draw.randrange(1, 256) for _ in ids))


def test_scores_without_numpy_are_those_with_it() -> None:
    draw = random.Random(7)
    weighted = [(draw.uniform(0.1, 9), _random_postings(draw)) for _ in range(5)]
    for allowed in (None, array("i", range(1, 400, 3)), array("i")):
        quick = best_scored(weighted, allowed, 50)
        with patch.dict(sys.modules, WITHOUT_NUMPY):
            plain = best_scored(weighted, allowed, 50)
        assert [at for at, _score in quick] == [at for at, _score in plain]
        assert [score for _at, score in quick] == pytest.approx([score for _at, score in plain])


def test_equal_scores_come_in_the_order_of_their_ids() -> None:
    equal = Postings(array("i", range(1, 90)), bytes([7] * 89))
    assert [at for at, _score in best_scored([(1.0, equal)], None, 5)] == [1, 2, 3, 4, 5]


def test_nothing_sought_is_nothing_found() -> None:
    assert best_scored([], None, 5) == []
    assert best_scored([(1.0, Postings(array("i"), b""))], None, 5) == []


def test_postings_are_what_they_were_once_unpacked() -> None:
    found = postings([(3, 0.5), (9, 2.0)])
    assert list(found.ids) == [3, 9]
    shares = [level * SHARE_STEP for level in found.levels]
    assert shares == pytest.approx([0.5, 2.0], abs=SHARE_STEP / 2)
    assert unpacked_postings(*packed_postings(found)) == found


def test_damaged_postings_are_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        unpacked_postings(b"no postings", b"at all")


def test_a_search_answers_even_if_numpy_cannot_be_loaded(own_docs: Settings) -> None:
    write_library(own_docs, [function("vllm", "csrc/walrus.cu")])
    vector_model.cache_clear()
    try:
        with patch.dict(sys.modules, WITHOUT_NUMPY):
            hits = search_documents(SearchRequest(query="walrus rows"), own_docs).hits
    finally:
        vector_model.cache_clear()
    assert hits[0].symbol == "walrus"
