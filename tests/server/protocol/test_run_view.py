"""The page of a run for clients that show views: the document, its parts, and who may read them."""

import base64
import hashlib
import json
import re
from html import unescape
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.server.apps import APP_MIME_TYPE
from mcp.types import TextResourceContents

from kopt.server.live_view.views import PARTS_OF_RUN
from kopt.server.protocol.run_view import RUN_VIEW
from support.scripted_jobs import ScriptedJobs
from support.told_run import told_run
from support.tool_client import connected, serve_options

pytestmark = pytest.mark.anyio
HOSTILE = "<script>alert(1)</script>"


async def read(address: str, home: Path) -> TextResourceContents:
    """Return one resource."""
    async with connected(serve_options(home), ScriptedJobs()) as client:
        (content,) = (await client.read_resource(address)).contents
    assert isinstance(content, TextResourceContents)
    return content


def hash_of(element: str, document: str) -> str:
    """Return the hash of an element's text as a content security policy has it."""
    found = re.search(f"<{element}>(.*)</{element}>", document, re.DOTALL)
    assert found is not None
    return base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


async def test_beam_step_names_a_document_that_loads_nothing(tmp_path: Path) -> None:
    async with connected(serve_options(tmp_path), ScriptedJobs()) as client:
        tools = (await client.list_tools()).tools
    views = {tool.name: (tool.meta or {}).get("ui") for tool in tools}
    assert views.pop("beam_step") == {"resourceUri": RUN_VIEW}
    assert set(views.values()) == {None}
    document = await read(RUN_VIEW, tmp_path)
    assert document.mime_type == APP_MIME_TYPE
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', document.text)
    assert policy is not None
    allowed = unescape(policy[1])
    assert allowed.startswith("default-src 'none'; form-action 'none'; base-uri 'none';")
    for element in ("script", "style"):
        assert f"{element}-src 'sha256-{hash_of(element, document.text)}'" in allowed
    assert not re.search(r"\b(src|href)=", document.text)
    assert all(f'<section id="{name}">' in document.text for name in PARTS_OF_RUN)


async def test_read_only_server_shows_no_view(tmp_path: Path) -> None:
    options = serve_options(tmp_path, read_only=True)
    async with connected(options, ScriptedJobs()) as client:
        with pytest.raises(MCPError):
            await client.read_resource(RUN_VIEW)


async def test_page_has_all_parts_and_names_code_by_addresses_of_the_server(
    tmp_path: Path,
) -> None:
    told_run(tmp_path, HOSTILE).close()
    page = json.loads((await read("kopt://runs/run-1/page", tmp_path)).text)
    assert (page["run"], page["is_running"]) == ("run-1", False)
    assert tuple(page["parts"]) == PARTS_OF_RUN
    whole = "".join(page["parts"].values())
    assert 'data-address="kopt://runs/run-1/code/4"' in whole
    assert "Candidate 4 passed the full check" in whole
    assert str(tmp_path) not in whole
    code = (await read("kopt://runs/run-1/code/4", tmp_path)).text
    assert "Changes from #1" in code and "&lt;script&gt;alert(1)" in code
    assert "<script" not in whole + code


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("kopt://runs/run-9/page", "no run matches"),
        ("kopt://runs/run/page", "no run matches"),
        ("kopt://runs/run-9/code/0", "no run matches"),
        ("kopt://runs/run-1/code/x", "candidates have numbers"),
        ("kopt://runs/run-1/code/99", "run-1 has no candidate 99"),
        ("kopt://runs/..%2F..%2Fetc/page", "Unknown resource|no run"),
    ],
)
async def test_what_is_not_there_is_not_found(address: str, words: str, tmp_path: Path) -> None:
    told_run(tmp_path).close()
    async with connected(serve_options(tmp_path), ScriptedJobs()) as client:
        with pytest.raises(MCPError, match=words):
            await client.read_resource(address)
