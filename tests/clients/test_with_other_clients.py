"""What `kopt setup` writes is what Claude Code, Codex, Gemini CLI and opencode read.

opencode then takes the same way as Claude Code in docs/session.md, with the same script as model.
All but Claude Code are skipped where they are not installed: `make test-clients CLIENTS=all`.
"""

import json
from pathlib import Path

from support.fake_messages import FakeMessages, in_conversation
from support.messages_wire import exchanges
from support.real_clients import KOPT, Clients
from support.session_document import outcome_of, outline
from support.session_script import OPENCODE, PROMPT, agent_without_gpu, replies_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "session.md"


def _set_up(clients: Clients, client: str, *words: str) -> None:
    ending = clients.kopt("setup", client, "--yes", *words)
    assert ending.code == 0, ending.stderr


def test_claude_code_connects_to_the_server_that_setup_wrote(clients: Clients) -> None:
    _set_up(clients, "claude", "--scope", "user")
    listed = clients.run("claude", "mcp", "list", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
    assert (listed.code, "Connected" in listed.stdout) == (0, True), listed.stdout


def test_codex_reads_the_server_that_setup_wrote(clients: Clients) -> None:
    _set_up(clients, "codex")
    listed = clients.run("codex", "mcp", "list", "--json")
    (server,) = json.loads(listed.stdout)
    assert (server["name"], server["enabled"]) == ("kopt", True)
    assert server["transport"]["command"] == str(KOPT)
    assert server["transport"]["args"][0] == "serve"


def test_gemini_connects_to_the_server_that_setup_wrote(clients: Clients) -> None:
    _set_up(clients, "gemini")
    output = ""
    for _ in range(3):  # it gives a server 5 s to start, which a busy machine may need
        # It starts servers in trusted folders only; the folder of this test is its own.
        listed = clients.run("gemini", "mcp", "list", GEMINI_CLI_TRUST_WORKSPACE="true")
        output = listed.stdout + listed.stderr
        if "Connected" in output:
            break
    assert "✓ kopt" in output, output


def test_opencode_connects_to_the_server_that_setup_wrote(clients: Clients) -> None:
    _set_up(clients, "opencode")
    listed = clients.run("opencode", "mcp", "list")
    output = listed.stdout + listed.stderr
    assert (listed.code, "✓ kopt" in output) == (0, True), output


def test_opencode_takes_a_function_from_pytorch_to_an_operator(clients: Clients) -> None:
    _set_up(clients, "opencode")
    written = clients.home / ".config/opencode/opencode.json"
    model = {"model": "anthropic/scripted", "permission": {"bash": {"kopt *": "allow"}}}
    script = agent_without_gpu(clients.project, OPENCODE)
    with FakeMessages(in_conversation(script)) as fake:
        options = {"baseURL": f"{fake.url}/v1", "apiKey": "scripted"}
        known: dict[str, object] = {"options": options, "models": {"scripted": {"name": "script"}}}
        settings = json.loads(written.read_text("utf-8")) | model
        settings["provider"] = {"anthropic": known}
        written.write_text(json.dumps(settings), "utf-8")
        ending = clients.run("opencode", "run", PROMPT)
    assert ending.code == 0, ending.stderr
    assert clients.left_over() == []
    replies = replies_of(exchanges(fake.requests[-1]["messages"]))
    shown = outline(DOCUMENT.read_text("utf-8"))
    assert [outcome_of(one) for one in replies] == [one.outcome for one in shown]
    assert (clients.project / "rms_scale_op" / "README.md").is_file()
