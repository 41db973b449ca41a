"""What `search_docs` answers over the protocol; how documents are found is tests/tools/docs'."""

from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult

from kopt.server.protocol.replies.fitting import tokens
from support.scripted_jobs import ScriptedJobs
from support.tool_client import ERAS, connected, facts_of, serve_options, text_of

pytestmark = pytest.mark.anyio

MAX_TOKENS = 1_500


async def searched(home: Path, mode: str = "auto", **arguments: Any) -> CallToolResult:
    """Return the reply to one search."""
    async with connected(serve_options(home), ScriptedJobs(), mode) as client:
        return await client.call_tool("search_docs", arguments)


@pytest.mark.parametrize("mode", ERAS)
async def test_passages_are_quoted_with_their_places(
    mode: str, tmp_path: Path, shared_home: Path
) -> None:
    reply = await searched(shared_home, mode, query="warp shuffle reduction")
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
    options = serve_options(shared_home, read_only=True)
    async with connected(options, ScriptedJobs()) as client:
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
    assert facts["next"] == f"search again without source and arch: {facts['advice']}"


async def test_unknown_source_is_answered_with_those_that_there_are(shared_home: Path) -> None:
    reply = await searched(shared_home, query="grid", source="nowhere")
    assert reply.is_error
    assert "nowhere" in text_of(reply)


async def test_unknown_target_is_refused(shared_home: Path) -> None:
    reply = await searched(shared_home, query="grid", arch="sm90a")
    assert reply.is_error
    assert "sm_90a" in text_of(reply)


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
