"""What `kopt setup` writes is what Claude Code, Codex, Gemini CLI and opencode read.

All but Claude Code are skipped where they are not installed: `make test-clients CLIENTS=all`.
"""

import json

from support.real_clients import KOPT, Clients


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
