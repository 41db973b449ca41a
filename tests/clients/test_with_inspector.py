"""The MCP inspector's command line against `kopt serve`, in both eras and over both transports."""

import json
from typing import Any

import pytest

from support.http_server import HttpServer
from support.real_clients import KOPT, Clients
from support.samples import SILU, plain_source

ERAS = ("modern", "legacy")
TOOL_RETURNED_ERROR = 5
TOOLS = {
    "search_docs",
    "compile",
    "check_correctness",
    "benchmark",
    "profile",
    "beam_step",
    "list_kernels",
    "job_wait",
    "job_cancel",
}


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> list[str]:
    """Return the inspector's words for a server."""
    if request.param == "stdio":
        return [str(KOPT), "serve"]
    server: HttpServer = request.getfixturevalue("http")
    return [server.url, "--transport", "http"]


def _call(tool: str, **arguments: object) -> list[str]:
    pairs = [f"{name}={value}" for name, value in arguments.items()]
    words = ["--method", "tools/call", "--tool-name", tool]
    return [*words, "--tool-arg", *pairs] if pairs else words


@pytest.mark.parametrize("era", ERAS)
def test_tools_are_listed_with_portable_schemas(
    clients: Clients, target: list[str], era: str
) -> None:
    words = ["--cli", *target, "--method", "tools/list", "--strict", "--protocol-era", era]
    ending = clients.run("mcp-inspector", *words)
    assert ending.code == 0, ending.stderr
    assert {tool["name"] for tool in ending.document["tools"]} == TOOLS


@pytest.mark.parametrize("era", ERAS)
def test_call_returns_the_same_facts_as_text_and_structure(
    clients: Clients, target: list[str], era: str
) -> None:
    words = ["--cli", *target, *_call("list_kernels"), "--protocol-era", era]
    ending = clients.run("mcp-inspector", *words)
    assert ending.code == 0, ending.stderr
    facts: dict[str, Any] = ending.document["structuredContent"]
    text: str = ending.document["content"][0]["text"]
    assert list(facts)[-1] == "next"
    assert all(name in text for name in facts)
    assert SILU.rpartition("_")[0] in json.dumps(facts)


@pytest.mark.parametrize("era", ERAS)
def test_candidate_is_compiled_from_its_path(clients: Clients, era: str) -> None:
    (clients.project / "mine.cu").write_text(plain_source("good_scalar.cu"), "utf-8")
    words = ["--cli", KOPT, "serve", *_call("compile", kernel=SILU, path="mine.cu")]
    ending = clients.run("mcp-inspector", *words, "--protocol-era", era)
    assert ending.code == 0, ending.stderr
    assert ending.document["structuredContent"]["status"] == "passed"


def test_candidate_is_checked_over_http(clients: Clients, http: HttpServer) -> None:
    source = plain_source("good_scalar.cu")
    call = _call("check_correctness", kernel=SILU, source=source, device="sim")
    facts: dict[str, Any] = {"status": "running"}
    for _ in range(4):  # each call is a client of its own; a busy machine needs more than one
        ending = clients.run("mcp-inspector", "--cli", http.url, "--transport", "http", *call)
        assert ending.code == 0, ending.stderr
        facts = ending.document["structuredContent"]
        if facts["status"] != "running":
            break
        call = _call("job_wait", job_id=facts["job_id"])
    assert facts["status"] == "passed", facts


@pytest.mark.parametrize("era", ERAS)
def test_unknown_kernel_is_an_error_that_says_what_to_do(
    clients: Clients, target: list[str], era: str
) -> None:
    words = ["--cli", *target, *_call("compile", kernel="silu", source="x"), "--protocol-era", era]
    ending = clients.run("mcp-inspector", *words)
    assert ending.code == TOOL_RETURNED_ERROR
    assert "did you mean silu_and_mul" in ending.document["content"][0]["text"]


def test_eight_calls_at_once_all_succeed(clients: Clients, http: HttpServer) -> None:
    load = ["--load", "--load-concurrency", "8", "--load-requests", "40"]
    call = _call("list_kernels", detail="concise")
    ending = clients.run("mcp-inspector", "--cli", http.url, "--transport", "http", *call, *load)
    assert ending.code == 0, ending.stderr
    assert "40" in ending.stdout
