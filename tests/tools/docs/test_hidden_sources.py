"""KOPT_WITHOUT_SOURCES: what a process may not see is neither found, nor read, nor hinted at."""

from dataclasses import replace

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.records import SearchRequest
from kopt.tools.docs.search import read_document, search_documents
from support.docs_winners import promote

ZEBRA = SearchRequest(query="zebra_sum stripe")


@pytest.fixture
def blind(own_docs: Settings) -> Settings:
    """Return a home with a winner that this process may not see."""
    promote(own_docs)
    return replace(own_docs, without_sources=("winners",))


def test_hidden_winner_is_not_found(own_docs: Settings, blind: Settings) -> None:
    assert search_documents(ZEBRA, own_docs).hits[0].source == "winners"
    result = search_documents(ZEBRA, blind)
    assert "winners" not in {hit.source for hit in result.hits} | result.sources.keys()


def test_advice_does_not_count_what_is_hidden(blind: Settings) -> None:
    gpus = ZEBRA.model_copy(update={"query": "zebra", "source": "gpus"})
    result = search_documents(gpus, blind)
    assert (result.hits, result.advice) == ((), None)


def test_hidden_document_is_not_read(own_docs: Settings, blind: Settings) -> None:
    uid = search_documents(ZEBRA, own_docs).hits[0].uid
    with pytest.raises(ToolError, match="hidden from this process by KOPT_WITHOUT_SOURCES"):
        read_document(uid, blind)


def test_near_uids_are_not_those_of_hidden_documents(own_docs: Settings, blind: Settings) -> None:
    near = search_documents(ZEBRA, own_docs).hits[0].uid.replace("winners:", "winner:")
    with pytest.raises(ToolError, match="winners:"):
        read_document(near, own_docs)
    with pytest.raises(ToolError) as refused:
        read_document(near, blind)
    assert "winners:" not in str(refused.value)


def test_hidden_source_that_is_asked_for_is_refused_rather_than_empty(blind: Settings) -> None:
    with pytest.raises(ToolError, match="KOPT_WITHOUT_SOURCES"):
        search_documents(ZEBRA.model_copy(update={"source": "notes,winners"}), blind)
