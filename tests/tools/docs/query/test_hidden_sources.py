"""KOPT_WITHOUT_SOURCES: what a process may not see is neither found, nor read, nor hinted at."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.query.search import OTHER_WORDS, read_document, search_documents
from kopt.tools.docs.query.source_list import list_sources
from kopt.tools.docs.records import SearchRequest
from support.built_docs import copy_docs
from support.docs_winners import promote
from support.written_index import function, write_library

pytestmark = pytest.mark.slow  # an index is built for each
ZEBRA = SearchRequest(query="zebra_sum stripe")


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory, built_docs: Path) -> Settings:
    """Return a home with a winner, in which the tests of this file only search and read."""
    home = copy_docs(built_docs, tmp_path_factory.mktemp("promoted") / "home")
    settings = Settings(home=home, jobs=1)
    promote(settings)
    return settings


@pytest.fixture
def blind(promoted: Settings) -> Settings:
    """Return the home with a winner that this process may not see."""
    return replace(promoted, without_sources=("winners",))


def test_hidden_winner_is_not_found(promoted: Settings, blind: Settings) -> None:
    assert search_documents(ZEBRA, promoted).hits[0].source == "winners"
    result = search_documents(ZEBRA, blind)
    assert "winners" not in {hit.source for hit in result.hits} | result.sources.keys()


@pytest.mark.parametrize("page", ["results.md", "field-notes.md", "blackwell.md"])
def test_pages_on_how_winners_became_fast_are_hidden_with_them(
    promoted: Settings, blind: Settings, page: str
) -> None:
    asked = SearchRequest(query=f"docs/{page} made faster", k=20)
    path = f"docs/{page}"
    assert path in {hit.path for hit in search_documents(asked, promoted).hits}
    assert path not in {hit.path for hit in search_documents(asked, blind).hits}


def test_advice_does_not_count_what_is_hidden(blind: Settings) -> None:
    gpus = ZEBRA.model_copy(update={"query": "zebra", "source": "gpus"})
    result = search_documents(gpus, blind)
    assert (result.hits, result.advice) == ((), OTHER_WORDS)


def test_hidden_document_is_not_read(promoted: Settings, blind: Settings) -> None:
    uid = search_documents(ZEBRA, promoted).hits[0].uid
    with pytest.raises(ToolError, match="hidden from this process by KOPT_WITHOUT_SOURCES"):
        read_document(uid, blind)


def test_near_uids_are_not_those_of_hidden_documents(promoted: Settings, blind: Settings) -> None:
    near = search_documents(ZEBRA, promoted).hits[0].uid.replace("winners:", "winner:")
    with pytest.raises(ToolError, match="winners:"):
        read_document(near, promoted)
    with pytest.raises(ToolError) as refused:
        read_document(near, blind)
    assert "winners:" not in str(refused.value)


def test_hidden_source_that_is_asked_for_is_refused_rather_than_empty(blind: Settings) -> None:
    with pytest.raises(ToolError, match="KOPT_WITHOUT_SOURCES"):
        search_documents(ZEBRA.model_copy(update={"source": "notes,winners"}), blind)


def test_places_in_hidden_sources_are_not_named(own_docs: Settings) -> None:
    twice = function("vllm", "csrc/walrus.cu").model_copy(
        update={"also_at": ("csrc/copy.cu:3", "mine:secret.cu:7")}
    )
    write_library(own_docs, [twice, function("mine", "csrc/otter.cu", body="unlike the other")])
    blind = replace(own_docs, without_sources=("mine",))
    walrus = SearchRequest(query="walrus", source="vllm")
    leaving_out = walrus.model_copy(update={"without": ("mine",)})
    both = ("vllm:csrc/copy.cu:3", "mine:secret.cu:7")
    assert search_documents(walrus, own_docs).hits[0].also_at == both
    assert search_documents(walrus, blind).hits[0].also_at == both[:1]
    assert search_documents(leaving_out, own_docs).hits[0].also_at == both[:1]
    assert read_document(twice.uid, own_docs).document.also_at == twice.also_at
    assert read_document(twice.uid, blind).document.also_at == ("csrc/copy.cu:3",)


@pytest.mark.parametrize("name", ["Winners", "nothing-of-this-name"])
def test_a_name_to_hide_that_is_unknown_hides_everything(own_docs: Settings, name: str) -> None:
    uid = search_documents(SearchRequest(query="cp_async_wait_group"), own_docs).hits[0].uid
    blind = replace(own_docs, without_sources=(name,))
    for use in (
        lambda: search_documents(ZEBRA, blind),
        lambda: read_document(uid, blind),
        lambda: list_sources(blind),
    ):
        with pytest.raises(ToolError, match=f"{name}' is unknown"):
            use()


def test_words_are_not_suggested_while_something_is_hidden(
    promoted: Settings, blind: Settings
) -> None:
    typo = SearchRequest(query="zebra_sun")
    assert "zebra_sum" in search_documents(typo, promoted).unknown_words[0].nearest
    for result in (
        search_documents(typo, blind),
        search_documents(typo.model_copy(update={"without": ("winners",)}), promoted),
    ):
        assert [word.nearest for word in result.unknown_words] == [()]
