"""The Skills extension: one skill, its files with digests that hold, folders, refusals."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, Request, RequestParams, Result, TextResourceContents
from pydantic import ConfigDict

from kopt.server.jobs.jobs import WatchedJobs
from kopt.server.protocol.skills_extension import SKILL_URI, Skills
from kopt.server.skill import skill_files, skill_frontmatter
from support.scripted_jobs import ScriptedJobs
from support.tool_client import ERAS, connected, serve_options, standing

pytestmark = pytest.mark.anyio
FOLDERS = ("skill://kopt", "skill://kopt/references")


class AnyParams(RequestParams):
    """Whatever parameters a test sends."""

    model_config = ConfigDict(extra="allow")


class AnyAnswer(Result):
    """A result with every field that stands on the wire."""

    model_config = ConfigDict(extra="allow")


class AnyRequest(Request[AnyParams, str]):
    """A request of a method that the client library does not know."""

    method: str
    params: AnyParams


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Return the answer to `method`."""
    request = AnyRequest(method=method, params=AnyParams.model_validate(params))
    answer = await client.session.send_request(request, AnyAnswer)
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


@pytest.mark.parametrize("mode", ERAS)
async def test_the_skill_is_listed_with_frontmatter_and_every_file(mode: str) -> None:
    async with standing(mode) as client:
        (entry,) = (await ask(client, "skills/list"))["skills"]
        got = (await ask(client, "skills/get", uri=SKILL_URI))["skill"]
    assert entry == got
    assert (entry["uri"], entry["frontmatter"]) == (SKILL_URI, skill_frontmatter())
    uris = [one["uri"] for one in entry["resources"]]
    assert uris == [f"skill://kopt/{name}" for name in skill_files()]


async def test_the_extension_is_declared_with_its_setting_inline() -> None:
    async with standing() as client:
        declared = (client.server_capabilities.extensions or {})[Skills.identifier]
    assert declared == {"directoryRead": True}


@pytest.mark.parametrize("mode", ERAS)
async def test_what_is_read_has_the_digest_and_size_that_were_told(mode: str) -> None:
    async with standing(mode) as client:
        (entry,) = (await ask(client, "skills/list"))["skills"]
        for told in entry["resources"]:
            (content,) = (await client.read_resource(told["uri"])).contents
            assert isinstance(content, TextResourceContents)
            assert content.mime_type == "text/markdown"
            data = content.text.encode()
            assert told["size"] == len(data)
            assert told["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"


async def test_the_resource_of_the_skill_has_its_name_and_description() -> None:
    async with standing() as client:
        listed = {str(one.uri): one for one in (await client.list_resources()).resources}
    skill = listed[SKILL_URI]
    assert (skill.name, skill.description) == ("kopt", skill_frontmatter()["description"])
    replies = listed["skill://kopt/references/replies.md"]
    assert replies.description == "Reading replies (of the skill kopt)"


@pytest.mark.parametrize(("mode", "is_cacheable"), [("auto", True), ("legacy", False)])
async def test_results_say_how_long_they_may_be_kept_where_the_protocol_has_that(
    mode: str, is_cacheable: bool
) -> None:
    async with standing(mode) as client:
        listed = await ask(client, "skills/list")
        got = await ask(client, "skills/get", uri=SKILL_URI)
    for result in (listed, got):
        assert ("ttlMs" in result, "cacheScope" in result) == (is_cacheable, is_cacheable)
        assert result.get("resultType") == ("complete" if is_cacheable else None)


@pytest.mark.parametrize("mode", ERAS)
async def test_folders_list_their_own_children_alone(mode: str) -> None:
    async with standing(mode) as client:
        rows = {
            folder: (await ask(client, "resources/directory/read", uri=folder))["resources"]
            for folder in FOLDERS
        }
    top = {row["uri"]: row["mimeType"] for row in rows[FOLDERS[0]]}
    assert top == {SKILL_URI: "text/markdown", FOLDERS[1]: "inode/directory"}
    below = [row["uri"] for row in rows[FOLDERS[1]]]
    files = [name for name in skill_files() if name.startswith("references/")]
    assert below == [f"skill://kopt/{name}" for name in files]


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("skills/get", {"uri": "skill://other/SKILL.md"}, f"other/SKILL.md; there is {SKILL_URI}"),
        ("skills/get", {"uri": FOLDERS[0]}, "no skill is served at skill://kopt;"),
        ("skills/get", {"uri": "x\x1b[2J" * 500}, "no skill is served at x"),
        ("skills/get", {}, ""),
        ("skills/list", {"cursor": "2"}, "no page begins at cursor 2"),
        ("resources/directory/read", {"uri": SKILL_URI}, "SKILL.md is no directory resource"),
        ("resources/directory/read", {"uri": "skill://kopt/"}, "is no directory resource"),
        ("resources/directory/read", {"uri": "skill://kopt/../.."}, "is no directory resource"),
        ("resources/directory/read", {"uri": FOLDERS[0], "cursor": "x"}, "no page begins at"),
        ("resources/read", {"uri": "skill://kopt/../../skill.py"}, ""),
        ("resources/read", {"uri": "skill://kopt/none.md"}, ""),
    ],
)
async def test_what_is_not_there_is_an_error_of_the_parameters(
    mode: str, method: str, params: dict[str, str], said: str
) -> None:
    async with standing(mode) as client:
        with pytest.raises(MCPError) as caught:
            await ask(client, method, **params)
    if mode == "auto" or method != "resources/read":
        assert caught.value.code == INVALID_PARAMS
    assert said in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


async def test_read_only_server_serves_no_skill(tmp_path: Path) -> None:
    options = serve_options(tmp_path, read_only=True)
    async with connected(options, WatchedJobs(ScriptedJobs())) as client:
        with pytest.raises(MCPError):
            await ask(client, "skills/list")
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
    assert [uri for uri in listed if uri.startswith("skill:")] == []
