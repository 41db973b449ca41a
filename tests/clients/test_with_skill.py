"""The skill as clients find it: as Claude Code's plugin, and where `kopt setup --skill` puts it.

All but Claude Code are skipped where they are not installed: `make test-clients CLIENTS=all`.
"""

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kopt.server.skill import skill_frontmatter, skill_section
from support.fake_messages import FakeMessages, in_conversation
from support.messages_wire import Exchange, ToolCall, Turn
from support.real_clients import KOPT, Clients, environment

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "server" / "plugin"
QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
DESCRIPTION = str(skill_frontmatter()["description"])
LOOP = skill_section("The loop")
"""What a model is shown once it has loaded the skill, and not before."""
_APP_SERVER_LIMIT_S = 60.0


def claude(clients: Clients, *words: object, **more: str) -> str:
    """Return what Claude Code prints for `words`, with `kopt` on PATH; fails if it fails."""
    path = f"{clients.installed / 'bin'}:{KOPT.parent}:{os.environ['PATH']}"
    ending = clients.run("claude", *words, **QUIET, **{"PATH": path, **more})
    assert ending.code == 0, ending.stdout + ending.stderr
    return ending.stdout


def install_plugin(clients: Clients) -> None:
    """Install the plugin from the marketplace of this checkout."""
    claude(clients, "plugin", "marketplace", "add", ROOT)
    claude(clients, "plugin", "install", "kopt@kopt")


def session(clients: Clients, skill: str) -> tuple[dict[str, Any], list[str]]:
    """Return the first event of a headless session that loads `skill`, and what the model got."""

    def loads_the_skill(done: tuple[Exchange, ...]) -> Turn:
        return Turn("done") if done else Turn("", (ToolCall("Skill", {"skill": skill}),))

    with FakeMessages(in_conversation(loads_the_skill)) as fake:
        model = {"ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "scripted"}
        words = ("-p", "hello", "--allowedTools", "Skill", "--output-format", "stream-json")
        printed = claude(clients, *words, "--verbose", **model)
        bodies = [body for body in fake.requests if body.get("tools")]
    event: dict[str, Any] = json.loads(printed.splitlines()[0])
    return event, ["\n".join(_texts(body)) for body in bodies]


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        inner = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        for each in inner:
            yield from _texts(each)


@pytest.mark.parametrize("path", [ROOT, PLUGIN, PLUGIN / "skills"])
def test_marketplace_plugin_and_skill_are_valid(clients: Clients, path: Path) -> None:
    assert "Validation passed" in claude(clients, "plugin", "validate", "--strict", path)


def test_plugin_brings_the_skill_and_a_server_that_connects(clients: Clients) -> None:
    install_plugin(clients)
    (listed,) = json.loads(claude(clients, "plugin", "list", "--json"))
    assert (listed["id"], listed["enabled"]) == ("kopt@kopt", True)
    assert "plugin:kopt:kopt: kopt serve - ✔ Connected" in claude(clients, "mcp", "list")
    event, (first, second) = session(clients, "kopt:kopt")
    assert "kopt:kopt" in event["slash_commands"]
    assert [one["name"] for one in event["mcp_servers"]] == ["plugin:kopt:kopt"]
    assert DESCRIPTION in first and LOOP not in first
    assert LOOP in second


def test_plugin_without_kopt_on_path_says_that_its_server_failed(clients: Clients) -> None:
    install_plugin(clients)
    bare = f"{clients.installed / 'bin'}:/usr/bin:/bin"
    assert "plugin:kopt:kopt: kopt serve - ✘" in claude(clients, "mcp", "list", PATH=bare)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_claude_code_finds_the_skill_that_setup_wrote(clients: Clients, scope: str) -> None:
    written(clients, "claude", scope)
    event, (first, second) = session(clients, "kopt")
    assert "kopt" in event["slash_commands"]
    assert DESCRIPTION in first and LOOP not in first
    assert LOOP in second


def written(clients: Clients, client: str, scope: str) -> Path:
    """Write the skill for `client`, and return the path of its SKILL.md."""
    ending = clients.kopt("setup", client, "--skill", "--scope", scope, "--yes", "--json")
    assert ending.code == 0, ending.stderr
    return Path(ending.document["path"]) / "SKILL.md"


@pytest.mark.parametrize("scope", ["user", "project"])
def test_gemini_finds_the_skill_that_setup_wrote(clients: Clients, scope: str) -> None:
    path = written(clients, "gemini", scope)
    listed = clients.run("gemini", "skills", "list", GEMINI_CLI_TRUST_WORKSPACE="true")
    assert f"Location:    {path}" in listed.stdout + listed.stderr
    assert "kopt [Enabled]" in listed.stdout + listed.stderr


@pytest.mark.parametrize("scope", ["user", "project"])
def test_opencode_finds_the_skill_that_setup_wrote(clients: Clients, scope: str) -> None:
    path = written(clients, "opencode", scope)
    listed = json.loads(clients.run("opencode", "debug", "skill").stdout)
    assert {"kopt": str(path)}.items() <= {one["name"]: one["location"] for one in listed}.items()


@pytest.mark.parametrize("scope", ["user", "project"])
def test_codex_finds_the_skill_that_setup_wrote(clients: Clients, scope: str) -> None:
    path = written(clients, "codex", scope)
    (listed,) = codex_answer(clients, "skills/list", {"cwds": [str(clients.project)]})["data"]
    assert listed["errors"] == []
    (skill,) = [one for one in listed["skills"] if one["name"] == "kopt"]
    assert (skill["path"], skill["enabled"]) == (str(path), True)
    assert skill["description"] == DESCRIPTION


def codex_answer(clients: Clients, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return what Codex's app server answers."""
    program = clients.program("codex")
    path = f"{clients.installed / 'bin'}:{os.environ['PATH']}"
    hello = {"clientInfo": {"name": "test", "version": "0"}}
    asked = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "initialized"},
        {"id": 1, "method": method, "params": params},
    ]
    with subprocess.Popen(
        [program, "app-server"],
        cwd=clients.project,
        env=environment(clients.home) | {"PATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        limit = threading.Timer(_APP_SERVER_LIMIT_S, server.kill)
        limit.start()
        try:
            for message in asked:
                server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            answers = (json.loads(line) for line in server.stdout)
            found = next((one for one in answers if one.get("id") == 1), None)
        finally:
            limit.cancel()
            server.kill()
    assert found is not None, "codex app-server ended without an answer"
    result: dict[str, Any] = found["result"]
    return result
