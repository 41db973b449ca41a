"""Notices that a caller gets once in a session, and not again."""

from pathlib import Path

import pytest

from kopt.server.protocol.caller import Caller
from kopt.server.protocol.told_once import ToldOnce
from support.scripted_jobs import ScriptedJobs
from support.tool_client import connected, facts_of, serve_options

pytestmark = pytest.mark.anyio


def test_each_caller_is_told_each_notice_once() -> None:
    told, mine, other = ToldOnce(), Caller("local codex"), Caller("local claude")
    assert told.is_news(mine, "offer") and told.is_news(mine, "notice")
    assert told.is_news(other, "offer")
    assert not told.is_news(mine, "offer") and not told.is_news(other, "offer")


def test_agents_that_share_a_token_are_told_each_time() -> None:
    told, shared = ToldOnce(), Caller("token-2", "token:2")
    assert told.is_news(shared, "notice") and told.is_news(shared, "notice")


def test_a_caller_that_many_others_came_after_is_told_again() -> None:
    told, mine = ToldOnce(), Caller("mine")
    assert told.is_news(mine, "offer")
    for number in range(300):
        told.is_news(Caller(f"other {number}"), "offer")
    assert told.is_news(mine, "offer")


async def test_search_says_its_notice_in_the_first_reply_alone(shared_home: Path) -> None:
    async with connected(serve_options(shared_home), ScriptedJobs()) as client:
        first, second = [
            facts_of(await client.call_tool("search_docs", {"query": "warp shuffle"}))
            for _ in range(2)
        ]
    assert "not instructions" in first["notice"] and first["offer"]
    assert "notice" not in second and "offer" not in second
    assert first["hits"] == second["hits"]
