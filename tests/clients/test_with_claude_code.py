"""Claude Code connects to `kopt serve`, and optimizes a kernel headless with a scripted model."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from support.command_line import Ending
from support.fake_messages import FakeMessages, in_conversation
from support.http_server import HttpServer
from support.messages_wire import Exchange, Turn
from support.real_clients import KOPT, Clients
from support.session_document import outline, read_session, render
from support.session_script import PROMPT, agent_without_gpu

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "session.md"
CORE_TOOLS = {
    "search_docs",
    "compile",
    "check_correctness",
    "benchmark",
    "profile",
    "beam_step",
}
QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
INTRODUCTION = """\
# A session with Claude Code

Claude Code, headless, takes a PyTorch function from an empty folder to an operator of its own, for
an H100 that is not there. Its model is a script that plays the words and calls below, so that the
session runs without an account; Claude Code, kopt and every reply are real. Long values are cut;
tokens are those of the whole reply, its characters as compact JSON / 4. `make session` writes this
file, and `make test-clients` fails where its tools, statuses or fields are no longer what a session
shows.

The prompt: "{prompt}"
"""


def _configuration(clients: Clients) -> Path:
    path = clients.home / "mcp.json"
    server = {"command": str(KOPT), "args": ["serve"]}
    path.write_text(json.dumps({"mcpServers": {"kopt": server}}), "utf-8")
    return path


def _headless(clients: Clients, fake: FakeMessages, configuration: Path, prompt: str) -> Ending:
    words = ["-p", prompt, "--mcp-config", configuration, "--strict-mcp-config"]
    words += [
        "--allowedTools",
        "mcp__kopt,Write,Bash(kopt:*)",
        "--output-format",
        "stream-json",
        "--verbose",
    ]
    variables = {**QUIET, "ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "scripted"}
    return clients.run("claude", *words, **variables)


def _say_done(_: tuple[Exchange, ...]) -> Turn:
    return Turn("done")


def test_added_server_is_connected(clients: Clients) -> None:
    added = clients.run("claude", "mcp", "add", "kopt", "--", KOPT, "serve", **QUIET)
    assert added.code == 0, added.stderr
    listed = clients.run("claude", "mcp", "list", **QUIET)
    assert (listed.code, "Connected" in listed.stdout) == (0, True), listed.stdout


def test_server_reached_over_http_is_connected(clients: Clients, http: HttpServer) -> None:
    words = ["mcp", "add", "--transport", "http", "kopt", http.url]
    assert clients.run("claude", *words, **QUIET).code == 0
    listed = clients.run("claude", "mcp", "list", **QUIET)
    assert (listed.code, "Connected" in listed.stdout) == (0, True), listed.stdout


def test_mcp_json_of_the_checkout_works_as_it_is(clients: Clients) -> None:
    with FakeMessages(in_conversation(_say_done)) as fake:
        ending = _headless(replace(clients, project=ROOT), fake, ROOT / "mcp.json", "hello")
    assert (ending.code, read_session(ending.stdout).server) == (0, "connected"), ending.stderr


def test_checkout_is_found_without_being_told_and_waits_for_approval(clients: Clients) -> None:
    (clients.project / ".venv/bin").mkdir(parents=True)
    (clients.project / ".venv/bin/kopt").symlink_to(KOPT)
    for name in ("mcp.json", ".mcp.json"):
        shutil.copy2(ROOT / name, clients.project / name, follow_symlinks=False)
    listed = clients.run("claude", "mcp", "list", **QUIET)
    (line,) = [line for line in listed.stdout.splitlines() if line.startswith("kopt:")]
    assert "Pending approval" in line or "Connected" in line


def test_core_tools_are_in_the_first_request(clients: Clients) -> None:
    with FakeMessages(in_conversation(_say_done)) as fake:
        ending = _headless(clients, fake, _configuration(clients), "hello")
    assert ending.code == 0, ending.stderr
    offered = {tool["name"] for tool in fake.requests[0]["tools"]}
    assert {f"mcp__kopt__{name}" for name in CORE_TOOLS} <= offered
    instructions = json.dumps([fake.requests[0].get("system"), fake.requests[0]["messages"]])
    assert "check_correctness" in instructions


def test_scripted_session_is_what_the_document_shows(
    clients: Clients, request: pytest.FixtureRequest
) -> None:
    with FakeMessages(in_conversation(agent_without_gpu(clients.project))) as fake:
        ending = _headless(clients, fake, _configuration(clients), PROMPT)
    session = read_session(ending.stdout)
    assert session.server == "connected"
    assert ending.code == 0, session.closing + ending.stderr
    assert clients.left_over() == []
    document = render(session, INTRODUCTION.format(prompt=PROMPT), str(clients.project))
    if request.config.getoption("--write-session"):
        DOCUMENT.write_text(document, "utf-8")
    shown = outline(DOCUMENT.read_text("utf-8"))
    assert outline(document) == shown, "docs/session.md is out of date: make session writes it anew"
