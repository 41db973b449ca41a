"""Ranking: lists fused by rank, hits picked one after the other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.index_file import Sheet, fill
from kopt.tools.docs.indexing.index_meta import IndexMeta
from kopt.tools.docs.indexing.opened import in_memory
from kopt.tools.docs.query.query_words import QueryWords, query_words
from kopt.tools.docs.query.ranking import fused, in_order, ranked, with_ties
from kopt.tools.docs.vectors import DIMENSIONS, vector_model
from kopt.tools.docs.words.code_tokens import query_terms
from support.written_index import function

NOT_DESCRIBED, SORTS, MERGES, ITS_COPY = 1, 2, 3, 4
"""Ids; all four have the words that are asked for, and cards without a direction."""
ROUNDED = 1e-5
"""Of a score."""


@pytest.fixture
def library() -> Iterator[Collection]:
    """Give a library of a kernel that nobody described, and of three of which it is said."""
    pytest.importorskip("wordllama", reason="the extra docs is not installed")
    kernels = [
        function("vllm", "csrc/walrus.cu"),
        function("vllm", "csrc/bitonicSortKVInPlace.cu"),
        function("vllm", "csrc/MergeStateKernel.cu"),
        function("sglang", "csrc/MergeStateKernel.cu"),
    ]
    card = bytes(DIMENSIONS)
    sheets = [Sheet(one, entry_of(one, one.symbol or "", one.path, card)) for one in kernels]
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, IndexMeta(), sheets)
        yield replace(in_memory(connection), is_own=False)


def _scores(collection: Collection, prose: float, words: str = "rows") -> dict[int, float]:
    """Return the scores of what answers a question about sorting, best first."""
    model = vector_model()
    assert model is not None
    vector = model.query("sorting network")
    sought = QueryWords(text=words, terms=query_terms(words), prose=prose, vector=vector)
    _matches, best = ranked([collection], sought, Filters(), most=9)
    return {one.place[1]: one.score for one in best}


def test_what_is_said_to_do_it_comes_before_what_has_the_same_words(library: Collection) -> None:
    assert next(iter(_scores(library, prose=0))) == NOT_DESCRIBED
    assert next(iter(_scores(library, prose=1))) == SORTS


def test_it_says_half_as_much_if_half_of_the_question_is_names_of_code(library: Collection) -> None:
    none, half, whole = (_scores(library, prose)[SORTS] for prose in (0, 0.5, 1))
    assert whole - half == pytest.approx(half - none, abs=ROUNDED)
    assert half > none


def test_copies_gain_alike(library: Collection) -> None:
    without, with_it = _scores(library, prose=0), _scores(library, prose=1)
    gained = {chunk_id: with_it[chunk_id] - without[chunk_id] for chunk_id in with_it}
    assert gained[MERGES] == pytest.approx(gained[ITS_COPY], abs=ROUNDED)
    assert gained[SORTS] > gained[MERGES] > gained[NOT_DESCRIBED]
    assert gained[NOT_DESCRIBED] == 0


def test_it_finds_nothing_of_which_no_document_has_a_word(library: Collection) -> None:
    assert _scores(library, prose=1, words="penguin") == {}


def test_kopts_own_documents_are_not_ranked_by_it(library: Collection) -> None:
    own = replace(library, is_own=True)
    assert _scores(own, prose=1) == _scores(own, prose=0)


A, B, C, D = (0, 1), (0, 2), (1, 1), (1, 2)


def test_what_two_lists_have_comes_before_the_first_of_either() -> None:
    scores = fused([in_order(1.0, [A, B]), in_order(1.0, [C, B])])
    assert max(scores, key=scores.__getitem__) == B
    assert scores[A] == scores[C]


def test_a_list_counts_by_its_weight() -> None:
    scores = fused([in_order(1.0, [A]), in_order(0.5, [B])])
    assert scores[A] == pytest.approx(2 * scores[B])


def test_equal_scores_share_the_mean_of_their_ranks() -> None:
    listed = with_ties(1.0, [(A, 3.0), (B, 2.0), (C, 2.0), (D, 1.0)])
    assert list(listed.places) == [A, B, C, D]
    assert list(listed.ranks) == [1, 2.5, 2.5, 4]


@pytest.mark.parametrize(
    ("query", "prose"),
    [
        ("rotate keys before they are cached", 1.0),
        ("cp_async_bulk mbarrier.try_wait", 0.0),
        ("cp_async_bulk pipeline", 0.5),
        ("the and of", 1.0),
    ],
)
def test_names_of_code_are_no_prose(query: str, prose: float) -> None:
    assert query_words(query, []).prose == prose
