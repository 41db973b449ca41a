"""Searching: what comes back, within the budget and the filters, for any text."""

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.query.request import MOST_CHARACTERS
from kopt.tools.docs.query.search import OTHER_WORDS, read_document, search_documents
from kopt.tools.docs.records import SearchRequest, SearchResult
from support.docs_winners import promote


def _search(settings: Settings, query: str, **fields: object) -> SearchResult:
    request = SearchRequest.model_validate({"query": query, **fields})
    return search_documents(request, settings)


def _wide(text: str) -> str:
    """Return `text` in full-width letters, as an East Asian keyboard types them."""
    return "".join(chr(ord(letter) + 0xFEE0) if letter.isalpha() else letter for letter in text)


def test_a_hit_quotes_the_lines_at_its_location(shared_docs: Settings) -> None:
    hit = _search(shared_docs, "cp_async_wait_group").hits[0]
    document = read_document(hit.uid, shared_docs).document
    first_line = int(hit.location.rpartition(":")[2])
    from_hit = document.body.split("\n")[first_line - document.start_line :]
    assert hit.path == "kernels/common/cp_async.cuh"
    assert hit.text.split("\n") == from_hit[: len(hit.text.split("\n"))]


def test_replies_quoted_in_the_session_are_no_hits(shared_docs: Settings) -> None:
    result = _search(shared_docs, "A session with Claude Code: search_docs, beam_step", k=20)
    assert result.hits
    assert [hit.path for hit in result.hits if "session" in hit.path] == []


def test_the_definition_of_a_symbol_comes_first(shared_docs: Settings) -> None:
    for symbol in ("tma_store_2d", "sf_128x4_offset", "mbarrier_arrive_expect_tx", "warp_max"):
        assert _search(shared_docs, symbol).hits[0].symbol == symbol


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("CUtensorMap tile", "bulk_copy.cuh"),
        ("PDL", "griddepcontrol.cuh"),
        ("cudaGridDependencySynchronize", "griddepcontrol.cuh"),
        ("__ldg", "global_access.cuh"),
        ("transaction barrier", "mbarrier.cuh"),
    ],
)
def test_a_synonym_finds_what_has_another_name(
    shared_docs: Settings, query: str, name: str
) -> None:
    assert _search(shared_docs, query, source="headers").hits[0].path.endswith(name)


def test_a_hit_names_source_version_and_licence(shared_docs: Settings) -> None:
    hit = _search(shared_docs, "cp.async").hits[0]
    assert hit.license == "Apache-2.0"
    assert hit.version == _search(shared_docs, "cp.async").sources[hit.source]


def test_what_matched_is_said(shared_docs: Settings) -> None:
    hit = _search(shared_docs, "TMA swizzle zzzz", k=1).hits[0]
    assert "zzzz" not in hit.matched
    assert {"TMA", "swizzle"} & set(hit.matched)


@pytest.mark.parametrize("source", ["headers", "problems", "docs", "notes", "gpus"])
def test_a_source_filter_leaves_that_source_only(shared_docs: Settings, source: str) -> None:
    result = _search(shared_docs, "shared memory block", source=source, k=20)
    assert {hit.source for hit in result.hits} == {source}
    assert set(result.sources) == {source}


@pytest.mark.slow  # makes the whole index
def test_a_left_out_source_gives_no_hit(own_docs: Settings) -> None:
    promote(own_docs)
    assert _search(own_docs, "zebra stripe").hits[0].source == "winners"
    without = _search(own_docs, "zebra stripe", without=("winners",))
    assert not without.hits
    assert "winners" not in without.sources


def test_an_architecture_leaves_out_what_is_bound_to_others(shared_docs: Settings) -> None:
    def symbols(arch: str) -> set[str | None]:
        query, room = "asynchronous copy bulk tma", 50_000
        found = _search(shared_docs, query, source="headers", arch=arch, k=50, max_tokens=room)
        return {hit.symbol for hit in found.hits}

    assert {"cp_async"} <= symbols("sm_80")
    assert "bulk_load" not in symbols("sm_80")
    assert {"bulk_load", "cp_async"} <= symbols("sm_90a")


def test_kind_and_dtype_are_filters_too(shared_docs: Settings) -> None:
    hits = _search(shared_docs, "convert round", kind="device", dtype="fp4", k=20).hits
    assert hits
    assert {hit.kind for hit in hits} == {"device"}
    assert all("fp4" in hit.dtype for hit in hits)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"source": "nothing"}, "headers, problems, winners"),
        ({"source": "docs,nothing"}, "'nothing' is unknown"),
        ({"source": "flashinfer"}, "kopt docs build --source flashinfer"),
        ({"without": ("nothing",)}, "headers, problems, winners"),
        ({"arch": "sm_42"}, "sm_90"),
        ({"arch": "'; drop table chunk"}, "sm_90"),
        ({"kind": "poem"}, "device"),
        ({"dtype": "fp2"}, "bf16"),
        ({"k": 0}, "1 to 50"),
        ({"k": 51}, "1 to 50"),
        ({"page": 0}, "1 to 100"),
        ({"max_tokens": 5}, "100 to"),
    ],
)
def test_a_value_that_is_not_allowed_is_answered_with_those_that_are(
    shared_docs: Settings, fields: dict[str, object], named: str
) -> None:
    with pytest.raises(ToolError, match=named):
        _search(shared_docs, "tma", **fields)


@pytest.mark.parametrize("max_tokens", [100, 300, 1000, 2000, 8000])
@pytest.mark.parametrize("query", ["shared memory", "nvfp4 quantize", "data_race", "launch"])
def test_the_answer_stays_within_its_budget(
    shared_docs: Settings, query: str, max_tokens: int
) -> None:
    result = _search(shared_docs, query, max_tokens=max_tokens, k=20)
    quoted = "".join(hit.title + hit.location + hit.text for hit in result.hits)
    further = "".join(line.title + line.location for line in result.further)
    assert result.tokens <= max_tokens
    assert len((quoted + further).encode()) <= 3 * max_tokens
    assert result.hits or result.further


def test_what_the_budget_left_out_is_counted(shared_docs: Settings) -> None:
    few = _search(shared_docs, "shared memory", max_tokens=200, k=3)
    many = _search(shared_docs, "shared memory", max_tokens=50_000, k=50)
    total = len(few.hits) + len(few.further) + few.left_out
    assert total == len(many.hits) + len(many.further) + many.left_out
    assert few.left_out > many.left_out
    assert any(hit.left_out_lines for hit in few.hits)


def test_a_cut_hit_is_had_in_full_by_its_uid(shared_docs: Settings) -> None:
    hits = _search(shared_docs, "sanitizer", max_tokens=200).hits
    cut = next(hit for hit in hits if hit.left_out_lines)
    body = read_document(cut.uid, shared_docs).document.body
    assert cut.text in body
    assert len(body.split("\n")) == len(cut.text.split("\n")) + cut.left_out_lines


def test_an_unknown_uid_is_answered_with_near_ones(shared_docs: Settings) -> None:
    with pytest.raises(ToolError, match=r"cp_async\.cuh"):
        read_document("headers:kernels/common/cp_asinc.cuh#9", shared_docs)


def test_no_hit_names_the_nearest_words(shared_docs: Settings) -> None:
    result = _search(shared_docs, "mbarier")
    assert not result.hits
    assert result.left_out == 0
    assert result.unknown_words[0].word == "mbarier"
    assert "mbarrier" in result.unknown_words[0].nearest


def test_words_that_no_document_has_are_named_beside_the_hits(shared_docs: Settings) -> None:
    result = _search(shared_docs, "kubernetes shared memory")
    assert result.hits
    assert [word.word for word in result.unknown_words] == ["kubernetes"]


def test_a_filter_that_hides_all_hits_is_named(shared_docs: Settings) -> None:
    result = _search(shared_docs, "kPeakless griddepcontrol", source="gpus")
    assert not result.hits
    assert result.advice is not None
    assert "without the filters" in result.advice


def test_nothing_and_no_near_word_is_told_what_words_find(shared_docs: Settings) -> None:
    result = _search(shared_docs, "xylophonezz")
    assert (result.hits, result.unknown_words[0].nearest, result.advice) == ((), (), OTHER_WORDS)
    assert _search(shared_docs, "mbarier").advice is None


def test_symbol_that_nothing_defines_is_told_its_neighbours(shared_docs: Settings) -> None:
    result = _search(shared_docs, "wait", symbol="cp_async_wait_grup")
    assert not result.hits
    assert result.advice is not None
    assert "'cp_async_wait_grup'; near: cp_async_wait_group" in result.advice
    assert "without the filters" in result.advice
    defined = _search(shared_docs, "wait", symbol="cp_async_wait_group", source="gpus")
    assert defined.advice is not None
    assert "nothing defines" not in defined.advice


@pytest.mark.parametrize(
    "query", ["", "   ", "\n\t", "the of a", "\0\x01\x1b[", "🙂🚀", "!!! ??? ---", "*", '""']
)
def test_a_query_without_a_word_is_refused(shared_docs: Settings, query: str) -> None:
    with pytest.raises(ToolError, match="no word to search for"):
        _search(shared_docs, query)


@pytest.mark.parametrize(
    "query",
    [
        'tma" OR "x',
        "tma NEAR(load, 2)",
        "NEAR/3",
        "symbol: tma",
        "{symbol code} : tma",
        "tma AND NOT load",
        "tma*",
        "^tma",
        "(((tma",
        "-tma +load",
        "'; drop table chunk; --",
        "tma\0load\x1b[31m\u202eevil",
        "tma 🙂 load",
        _wide("tma load"),
        "tma \ud800 load",
        "загрузка tma",
        "テンソル tma",
        "_ __ ___ tma",
        "a.b.c.d.e.f.g.h tma",
        "tma " * 4000,
        "x" * 16_000 + " tma",
        " ".join(f"word{number}" for number in range(1800)) + " tma",
        "cp." * 5000 + "tma",
    ],
)
def test_any_text_is_words_and_never_syntax(shared_docs: Settings, query: str) -> None:
    result = _search(shared_docs, query, max_tokens=500)
    assert result.tokens <= 500
    assert SearchResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_a_word_is_found_however_hostile_its_neighbors_are(shared_docs: Settings) -> None:
    for query in ('griddepcontrol" OR "x', "NEAR(griddepcontrol)", _wide("griddepcontrol")):
        assert _search(shared_docs, query, k=1).hits[0].path.endswith("griddepcontrol.cuh")


def test_a_megabyte_is_refused_with_the_limit(shared_docs: Settings) -> None:
    with pytest.raises(ToolError, match=f"at most {MOST_CHARACTERS:,}"):
        _search(shared_docs, "tma " * 250_000)


def test_text_without_utf_8_is_looked_for_like_any_other(shared_docs: Settings) -> None:
    request = SearchRequest(query="grid", symbol="\udce9")
    assert search_documents(request, shared_docs).hits == ()
    with pytest.raises(ToolError, match="no document has the uid"):
        read_document("\udce9", shared_docs)
