"""Kopt's own documents and a library in one answer: order, filters, pages, offers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.query.search import OFFER, read_document, search_documents
from kopt.tools.docs.records import Chunk, SearchRequest, SearchResult
from kopt.tools.docs.sources import SOURCES
from support.built_docs import copy_docs
from support.written_index import function, write_library

ABOUT = ("cp.async pipeline in shared memory", "warp shuffle reduction", "TMA tile store")
LONG = [f"  value += row[{number}];" for number in range(150)]


def _search(settings: Settings, query: str, **fields: object) -> SearchResult:
    return search_documents(SearchRequest.model_validate({"query": query, **fields}), settings)


def _uids(result: SearchResult) -> list[str]:
    return [hit.uid for hit in result.hits]


def _pieces() -> list[Chunk]:
    """Return a function of 150 lines as the chunker cuts it."""
    whole = function("vllm", "csrc/ferret_sum.cu")
    parts = ((1, 90), (83, 150))
    return [
        whole.model_copy(
            update={"start_line": a, "end_line": b, "body": "\n".join(LONG[a - 1 : b])}
        )
        for a, b in parts
    ]


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory, built_docs: Path) -> Settings:
    """Return a home with kopt's own documents and a library of about forty functions."""
    settings = Settings(home=copy_docs(built_docs, tmp_path_factory.mktemp("merged") / "home"))
    names = [f"row_{first}{second}" for first in "abcdef" for second in "stuvw"]
    chunks = [
        function("flashinfer", f"csrc/{name}.cu", body=ABOUT[number % 3])
        for number, name in enumerate(names)
    ]
    crowded = [
        function("vllm", "csrc/crowded.cu", line, body="a walrus in shared memory")
        for line in range(1, 81, 10)
    ]
    lonely = function("sglang", "sgl/lonely.cu", body="a walrus in shared memory")
    narrow = function("sglang", "sgl/narrow.cu", body="narwhal").model_copy(
        update={"arch": ("sm100",), "dtype": ("fp4",), "kind": "device", "license": None}
    )
    older = function("sglang", "sgl/older.cu", body="narwhal").model_copy(
        update={"arch": ("sm80",)}
    )
    write_library(settings, [*chunks, *crowded, lonely, narrow, older, *_pieces()])
    return settings


def test_who_asks_for_code_gets_mostly_code(merged: Settings) -> None:
    result = _search(merged, "cp.async pipeline in shared memory", k=10, max_tokens=20_000)
    own = [hit for hit in result.hits if hit.source in SOURCES]
    assert len(result.hits) == 10
    assert 1 <= len(own) <= 3
    assert {"flashinfer", "headers", "docs"} <= set(result.sources)


@pytest.mark.parametrize("name", ["data_race", "tensor_maps", "__shfl_xor_sync"])
def test_what_kopt_defines_comes_first_beside_code(merged: Settings, name: str) -> None:
    hit = _search(merged, name).hits[0]
    assert hit.source in SOURCES
    assert hit.symbol == name


def test_the_definition_of_a_symbol_of_a_library_comes_first(merged: Settings) -> None:
    assert _search(merged, "row_cu").hits[0].symbol == "row_cu"


def test_a_crowded_file_leaves_room_for_others(merged: Settings) -> None:
    hits = _search(merged, "walrus", source="vllm,sglang", k=3).hits
    assert "sgl/lonely.cu" in [hit.path for hit in hits[:2]]


@pytest.mark.parametrize(
    ("arch", "symbols"),
    [("sm_80", {"older"}), ("sm_90a", {"older"}), ("sm_100a", {"older", "narrow"})],
)
def test_an_architecture_runs_what_is_older_and_not_what_another_has_alone(
    merged: Settings, arch: str, symbols: set[str]
) -> None:
    hits = _search(merged, "narwhal", source="sglang", arch=arch, k=20).hits
    assert {hit.symbol for hit in hits} == symbols


def test_several_sources_are_separated_by_commas(merged: Settings) -> None:
    hits = _search(merged, "shared memory", source="sglang, headers", k=20).hits
    assert {hit.source for hit in hits} == {"sglang", "headers"}


def test_filters_hold_for_the_library(merged: Settings) -> None:
    def found(**fields: object) -> list[str]:
        result = _search(merged, "narwhal", source="sglang", **fields)
        return [hit.path for hit in result.hits]

    everything = found()
    assert everything[0] == "sgl/narrow.cu"
    assert found(kind="device") == found(dtype="fp4") == ["sgl/narrow.cu"]
    assert found(arch="sm_100a") == everything
    assert "sgl/narrow.cu" not in found(arch="sm_90")
    assert found(symbol="Narrow") == ["sgl/narrow.cu"]


def test_a_symbol_alone_is_a_query(merged: Settings) -> None:
    result = _search(merged, "", symbol="row_cu")
    assert [hit.symbol for hit in result.hits] == ["row_cu"]


def test_a_long_function_is_one_whole_hit(merged: Settings) -> None:
    (hit,) = _search(merged, "ferret_sum", symbol="ferret_sum", max_tokens=5000).hits
    assert (hit.start_line, hit.end_line, hit.left_out_lines) == (1, 150, 0)
    assert hit.text.split("\n") == LONG
    second = read_document("vllm:csrc/ferret_sum.cu#83", merged)
    assert second.uid == hit.uid
    assert second.document.body == hit.text


@pytest.mark.parametrize("max_tokens", [250, 1200, 20_000])
def test_pages_follow_each_other_without_repeats_or_gaps(merged: Settings, max_tokens: int) -> None:
    fields = {"source": "flashinfer", "k": 7, "max_tokens": max_tokens}
    everything = _uids(_search(merged, "row", source="flashinfer", k=50, max_tokens=50_000))
    assert len(everything) == 30
    pages: list[str] = []
    page: int | None = 1
    while page is not None:
        result = _search(merged, "row", page=page, **fields)
        assert result.page == page
        assert len(pages) + len(result.hits) + len(result.further) + result.left_out == 30
        pages += _uids(result)
        page = result.next_page
    assert pages == everything


def test_a_page_beyond_the_last_says_so(merged: Settings) -> None:
    result = _search(merged, "row", source="flashinfer", page=90)
    assert not result.hits
    assert result.next_page is None
    assert result.advice is not None
    assert "beyond the last" in result.advice


def test_piece_of_a_function_is_bound_to_the_architectures_of_the_others(
    own_docs: Settings,
) -> None:
    begin = function("vllm", "csrc/mixed.cu", body="walrus").model_copy(update={"end_line": 90})
    end = begin.model_copy(update={"start_line": 83, "end_line": 120, "arch": ("sm90",)})
    write_library(own_docs, [begin, end, function("vllm", "csrc/plain.cu", body="walrus")])

    def found(arch: str) -> set[str | None]:
        hits = _search(own_docs, "walrus", source="vllm", arch=arch).hits
        return {hit.symbol for hit in hits}

    assert found("sm_90a") == {"mixed", "plain"}
    assert found("sm_80") == {"plain"}


def test_words_of_either_collection_are_known(merged: Settings) -> None:
    result = _search(merged, "walrus griddepcontrol narwal")
    assert [word.word for word in result.unknown_words] == ["narwal"]


def test_a_word_that_nothing_has_finds_nothing(merged: Settings) -> None:
    result = _search(merged, "mbarier")
    assert not result.hits
    assert "mbarrier" in result.unknown_words[0].nearest


def test_a_known_library_that_is_not_built_says_how(merged: Settings) -> None:
    with pytest.raises(ToolError, match="kopt docs build --source apex"):
        _search(merged, "row", source="apex")


def test_the_library_is_offered_until_it_is_built(own_docs: Settings, merged: Settings) -> None:
    assert _search(own_docs, "shared memory").offer == OFFER
    assert _search(own_docs, "shared memory", source="headers").offer is None
    assert _search(merged, "shared memory").offer is None


def test_an_unknown_uid_of_a_library_is_answered_with_those_of_the_file(merged: Settings) -> None:
    with pytest.raises(ToolError, match=r"did you mean vllm:csrc/crowded\.cu#"):
        read_document("vllm:csrc/crowded.cu#12", merged)


@pytest.mark.parametrize(
    "query", ['row" OR "x', "row\0 NEAR(x)", "row " * 2500, "行 row 🙂", "row*", "{code}: row"]
)
def test_any_text_is_words_for_the_library_too(merged: Settings, query: str) -> None:
    result = _search(merged, query, source="flashinfer", max_tokens=500)
    assert SearchResult.model_validate_json(result.model_dump_json(by_alias=True)) == result
    assert result.hits


def test_without_vectors_the_answer_says_what_is_missing(merged: Settings) -> None:
    assert "kopt-mcp[docs]" in (_search(merged, "row").degraded or "")
    assert _search(merged, "row", source="headers").degraded is None


def test_threads_that_search_at_once_get_the_same_answer(merged: Settings) -> None:
    request = SearchRequest(query="row pipeline", k=10)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(search_documents, [request] * 16, [merged] * 16))
    assert len({tuple(_uids(result)) for result in results}) == 1


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("how do I add my own problem", "docs/problems.md"),
        ("own problem", "docs/problems.md"),
        ("PyTorch custom op", "docs/problems.md"),
        ("what is a receipt", "docs/receipts.md"),
    ],
)
def test_who_asks_about_kopt_gets_the_manual_however_much_code_has_the_words(
    tmp_path: Path, built_docs: Path, query: str, page: str
) -> None:
    settings = Settings(home=copy_docs(built_docs, tmp_path / "home"))
    crowd = [
        function("cutlass", f"examples/tutorial/problem_{number}.cu", body=f"{query} {number}")
        for number in range(40)
    ]
    write_library(settings, crowd)
    result = _search(settings, query)
    places = [hit.uid.partition("#")[0] for hit in result.hits]
    assert f"docs:{page}" in places[:5]
    assert sum(place.startswith("docs:") for place in places) < len(places) / 2


@pytest.mark.parametrize("query", ["how do I add my own problem", "my own problem"])
def test_without_the_library_the_manual_is_not_behind_the_winners(
    own_docs: Settings, query: str
) -> None:
    found = [hit.uid.partition("#")[0] for hit in _search(own_docs, query).hits]
    assert any(place.startswith("docs:") for place in found[:2])
    assert sum(place.startswith("docs:") for place in found[:4]) >= 2


@pytest.mark.parametrize("query", ["getting started", "quick start", "tutorial", "How to start"])
def test_who_asks_how_to_begin_gets_the_tutorial_first(
    own_docs: Settings, merged: Settings, query: str
) -> None:
    for settings in (own_docs, merged):
        assert _search(settings, query).hits[0].uid.startswith("docs:docs/tutorial.md#")


def test_who_asks_how_to_begin_with_a_library_is_not_led_to_the_start_of_the_tutorial(
    merged: Settings,
) -> None:
    start = _search(merged, "tutorial").hits[0].uid
    assert _search(merged, "getting started with flashinfer").hits[0].uid != start


def test_who_asks_what_a_status_is_gets_its_card_first(merged: Settings) -> None:
    for query in ("what is plan_error", "plan_error", "why plan_error on sm_90a"):
        assert _search(merged, query).hits[0].uid.startswith("docs:docs/statuses.md")


def test_manual_is_another_name_of_the_docs(merged: Settings) -> None:
    hits = _search(merged, "receipt", source="manual").hits
    assert hits and {hit.source for hit in hits} == {"docs"}
    without = _search(merged, "receipt", without=["manual"], k=50, max_tokens=40_000).hits
    assert "docs" not in {hit.source for hit in without}
