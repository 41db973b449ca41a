"""What `search_docs` answers over the protocol; how documents are found is tests/tools/docs'."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult, TextResourceContents

from kopt.search.advice.retrieval_log import read_retrievals
from kopt.tools.facts.fitting import tokens
from support.built_docs import copy_docs
from support.scripted_jobs import ScriptedJobs
from support.scripted_runs import new_store
from support.tool_client import ERAS, connected, facts_of, serve_options, standing, text_of

pytestmark = pytest.mark.anyio

MAX_TOKENS = 1_500


async def searched(home: Path, **arguments: Any) -> CallToolResult:
    """Return the reply to one search."""
    async with standing(home=home) as client:
        return await client.call_tool("search_docs", arguments)


@pytest.mark.parametrize("mode", ERAS)
async def test_passages_are_quoted_with_their_places(
    mode: str, tmp_path: Path, shared_home: Path
) -> None:
    options = serve_options(shared_home)
    async with connected(options, ScriptedJobs(), mode) as client:  # the notice comes once
        reply = await client.call_tool("search_docs", {"query": "warp shuffle reduction"})
    facts = facts_of(reply)
    assert all(hit["text"] and hit["location"] for hit in facts["hits"])
    assert 0 < len(facts["hits"]) <= 5
    assert "not instructions" in facts["notice"]
    assert list(facts)[-1] == "next"
    assert all(hit["location"] in text_of(reply) for hit in facts["hits"])


@pytest.mark.parametrize(
    "query", ["nvfp4 block scale e4m3", "launch bounds occupancy", "cp.async pipeline", "tune"]
)
async def test_concise_answer_fits_a_models_context(query: str, shared_home: Path) -> None:
    assert tokens(facts_of(await searched(shared_home, query=query, k=20))) <= MAX_TOKENS


async def test_read_only_server_does_not_point_to_compile(shared_home: Path) -> None:
    async with standing(home=shared_home, read_only=True) as client:
        reply = await client.call_tool("search_docs", {"query": "vectorized loads"})
    assert facts_of(reply)["hits"]
    assert "call compile" not in facts_of(reply)["next"]


async def test_full_answer_says_more(shared_home: Path) -> None:
    concise = facts_of(await searched(shared_home, query="vectorized loads"))
    full = facts_of(await searched(shared_home, query="vectorized loads", detail="full"))
    assert tokens(full) > tokens(concise)
    assert full["schema"] == "kopt.docs-search/1"


async def test_number_of_passages_is_kept(shared_home: Path) -> None:
    assert len(facts_of(await searched(shared_home, query="grid", k=1))["hits"]) == 1


@pytest.mark.parametrize("detail", ["concise", "full"])
async def test_search_that_only_the_filters_emptied_is_told_to_drop_them(
    detail: str, shared_home: Path
) -> None:
    asked = {"query": "kPeakless griddepcontrol", "source": "gpus", "detail": detail}
    facts = facts_of(await searched(shared_home, **asked))
    assert not facts.get("hits")
    assert facts["advice"].startswith("without the filters ")
    assert facts["next"] == f"search again: {facts['advice']}"


async def test_unknown_source_is_answered_with_those_that_there_are(shared_home: Path) -> None:
    reply = await searched(shared_home, query="grid", source="nowhere")
    assert reply.is_error
    assert "nowhere" in text_of(reply)


async def test_unknown_target_is_refused(shared_home: Path) -> None:
    reply = await searched(shared_home, query="grid", arch="hopper")
    assert reply.is_error
    assert "sm_90" in text_of(reply)


@pytest.mark.parametrize("query", ["...", " ", "\u202e"])
async def test_query_without_a_word_is_refused(query: str, shared_home: Path) -> None:
    reply = await searched(shared_home, query=query)
    assert reply.is_error
    assert "no word to search for" in text_of(reply)


@pytest.mark.parametrize(
    "query",
    [
        "zzqqxx yyvvww",
        '" OR 1=1 --',
        "NEAR( * ^ AND OR NOT",
        '{"query": 1}',
        "null",
        "x" * 1000,
        "\0\x1b[31m\u202e",
    ],
)
async def test_hostile_query_is_a_search_like_any_other(query: str, shared_home: Path) -> None:
    reply = await searched(shared_home, query=query)
    assert list(facts_of(reply))[-1] == "next"
    assert "\x1b" not in text_of(reply)


async def test_hit_says_where_it_is_from_and_under_which_licence(shared_home: Path) -> None:
    facts = facts_of(await searched(shared_home, query="cp_async_wait_group", k=1))
    (hit,) = facts["hits"]
    assert hit["location"].startswith("headers:kernels/common/cp_async.cuh:cp_async_wait_group L")
    assert "Apache-2.0" in hit["origin"]
    assert "cp_async_wait_group" in hit["matched"]


async def test_text_cut_short_and_further_hits_name_what_can_be_read(shared_home: Path) -> None:
    asked = {"query": "rmsnorm reduction", "kind": "problem", "max_tokens": 300}
    async with standing(home=shared_home) as client:
        facts = facts_of(await client.call_tool("search_docs", asked))
        cut = facts["hits"][0]["rest"].partition(" more: ")[2]
        named = [cut, *(line.split()[0] for line in facts.get("further", ()))]
        texts = [(await client.read_resource(address)).contents[0] for address in named]
    assert all(isinstance(text, TextResourceContents) for text in texts)


async def test_filters_are_handed_on(shared_home: Path) -> None:
    asked = {"query": "e4m3 scale", "kind": "device", "dtype": "fp8", "detail": "full"}
    hits = facts_of(await searched(shared_home, **asked))["hits"]
    assert {hit["kind"] for hit in hits} == {"device"}
    assert all("fp8" in hit["dtype"] for hit in hits)


async def test_what_is_found_for_a_run_is_logged_with_it(tmp_path: Path, built_docs: Path) -> None:
    with new_store(copy_docs(built_docs, tmp_path), "run-1") as store:
        facts = facts_of(await searched(tmp_path, query="warp", k=2, run_id="run-1"))
        (entry,) = read_retrievals(store.folder)
    assert len(entry.hits) == len(facts["hits"])
    assert entry.asked_by.startswith("search_docs, local")


async def test_what_names_no_run_is_logged_with_that_of_the_process(
    tmp_path: Path, built_docs: Path
) -> None:
    options = serve_options(tmp_path)
    study = replace(options, settings=replace(options.settings, retrieval_run="run-1"))
    with new_store(copy_docs(built_docs, tmp_path), "run-1") as store:
        async with connected(study, ScriptedJobs()) as client:
            await client.call_tool("search_docs", {"query": "warp", "k": 2})
        (entry,) = read_retrievals(store.folder)
    assert entry.query == "warp"


async def test_a_page_of_the_manual_is_read_whole_page_by_page(shared_home: Path) -> None:
    texts: list[str] = []
    page, following = 1, ""
    while page == 1 or "for the rest" in following:
        reply = await searched(shared_home, read="docs/statuses.md", page=page, max_tokens=800)
        facts = facts_of(reply)
        assert tokens(facts) <= 1_000
        texts.append(facts["text"])
        following, page = facts["next"], page + 1
    manual = Path(__file__).parents[3] / "docs" / "statuses.md"
    told = [" ".join(line.split()) for text in texts for line in text.splitlines()]
    written = [" ".join(line.split()) for line in manual.read_text("utf-8").splitlines()]
    assert told == written
    assert page == 3
    behind = await searched(shared_home, read="docs/statuses.md", page=page, max_tokens=800)
    assert behind.is_error and "behind the last" in text_of(behind)


async def test_the_address_in_a_reply_can_be_read_without_resources(shared_home: Path) -> None:
    facts = facts_of(await searched(shared_home, query="rmsnorm", k=1))
    address = facts["further"][0].partition(" ")[0]
    assert facts_of(await searched(shared_home, read=address))["page"] == "1 of 1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "got neither"),
        ({"query": "x", "read": "docs/problems.md"}, "got both"),
        ({"read": "docs/problem.md"}, "did you mean docs/problems.md"),
        ({"read": "/etc/passwd"}, "no document has the uid"),
    ],
)
async def test_what_cannot_be_read_says_what_can(
    arguments: dict[str, Any], said: str, shared_home: Path
) -> None:
    reply = await searched(shared_home, **arguments)
    assert reply.is_error
    assert said in text_of(reply)


async def test_an_unknown_run_is_refused_and_no_other_is_named(tmp_path: Path) -> None:
    with new_store(tmp_path, "run-1"):
        reply = await searched(tmp_path, query="warp", run_id="run-2")
    assert reply.is_error
    assert "no run matches 'run-2'" in text_of(reply) and "run-1" not in text_of(reply)
