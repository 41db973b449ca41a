"""`kopt setup`: what it asks, shows, writes and refuses on the command line."""

import json
import os
import sys
from pathlib import Path

import pytest

from support.client_files import below
from support.command_line import Kopt
from support.on_terminal import OnTerminal
from support.quick_cases import first_quick

MOVED_BY = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")
CUDA = ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES")
KOPT = Path(sys.executable).with_name("kopt")


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of a user who has set nothing; its `work` is the current folder."""
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    for name in (*MOVED_BY, *CUDA):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    return home


def test_print_shows_the_change_and_makes_none(kopt: Kopt, user: Path) -> None:
    before = below(user)
    ending = kopt("setup", "claude", "--print")
    assert (ending.code, below(user)) == (0, before)
    path = user / "work" / ".mcp.json"
    assert f"+++ {path}\n" in ending.stdout and f'+      "command": "{KOPT}",\n' in ending.stdout
    assert "nothing was changed" in ending.stdout


def test_without_a_terminal_the_change_is_shown_and_refused(kopt: Kopt, user: Path) -> None:
    before = below(user)
    ending = kopt("setup", "codex")
    assert (ending.code, below(user)) == (2, before)
    assert "+[mcp_servers.kopt]" in ending.stdout
    assert "no terminal" in ending.stderr and "--yes" in ending.stderr


def test_yes_writes_and_says_what_comes_next_and_how_to_undo(kopt: Kopt, user: Path) -> None:
    ending = kopt("setup", "cursor", "--yes", "--scope", "project", "--name", "k1")
    assert ending.code == 0
    server = json.loads((user / "work/.cursor/mcp.json").read_text("utf-8"))["mcpServers"]["k1"]
    assert (server["command"], server["args"]) == (str(KOPT), ["serve"])
    assert "to undo: kopt setup cursor --undo --scope project --name k1\n" in ending.stdout
    assert "next: open Cursor" in ending.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "noted for --undo that no file was there: "), ("{}", "kept what was there: ")],
)
def test_what_was_kept_is_said_as_it_is(
    kopt: Kopt, user: Path, text: str | None, said: str
) -> None:
    path = user / "work" / ".mcp.json"
    if text is not None:
        path.write_text(text)
    ending = kopt("setup", "claude", "--yes")
    assert f"wrote {path}\n{said}{path}.kopt-" in ending.stdout


def test_a_second_call_has_nothing_to_do_and_asks_nothing(kopt: Kopt, user: Path) -> None:
    kopt("setup", "gemini", "--yes")
    before = below(user)
    ending = kopt("setup", "gemini")
    assert (ending.code, below(user)) == (0, before)
    assert ending.stdout.endswith("nothing to do: it says so already\n")


def test_undo_puts_back_what_was_there(kopt: Kopt, user: Path) -> None:
    before = below(user)
    for client in ("claude", "claude-desktop", "codex", "gemini", "vscode", "cursor", "opencode"):
        assert kopt("setup", client, "--yes").code == 0
        shown = kopt("setup", client, "--undo", "--print")
        assert shown.code == 0 and "+++ /dev/null" in shown.stdout
        assert kopt("setup", client, "--undo", "--yes").code == 0
    assert below(user) == before


def test_undo_after_a_change_shows_it_and_refuses(kopt: Kopt, user: Path) -> None:
    kopt("setup", "claude", "--scope", "user", "--yes")
    path = user / ".claude.json"
    path.write_text(path.read_text("utf-8").replace("{\n", '{\n  "numStartups": 1,\n', 1))
    before = below(user)
    ending = kopt("setup", "claude", "--scope", "user", "--undo", "--yes")
    assert (ending.code, below(user)) == (2, before)
    assert '-  "numStartups": 1,\n' in ending.stderr
    assert "claude mcp remove kopt -s user" in ending.stderr


def test_variables_that_are_set_are_written_for_clients_that_pass_none_on(
    kopt: Kopt, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HF_TOKEN", "s3cr3t")
    kopt("setup", "codex", "--yes")
    text = (user / ".codex/config.toml").read_text("utf-8")
    assert 'CUDA_HOME = "/usr/local/cuda"\n' in text and "KOPT_HOME = " in text
    assert "CUDA_VISIBLE_DEVICES" not in text and "s3cr3t" not in text


def test_the_folder_of_own_problems_is_handed_to_serve(kopt: Kopt, user: Path) -> None:
    (user / "mine").mkdir()
    kopt("setup", "claude", "--yes", "--problems", "../mine")
    entry = json.loads((user / "work/.mcp.json").read_text("utf-8"))["mcpServers"]["kopt"]
    assert entry["args"] == ["serve", "--problems", str(user / "mine")]


def test_claude_code_and_opencode_get_no_copy_of_the_environment(kopt: Kopt, user: Path) -> None:
    kopt("setup", "claude", "--yes")
    kopt("setup", "opencode", "--yes")
    texts = [user / "work/.mcp.json", user / ".config/opencode/opencode.json"]
    assert ["KOPT_HOME" in path.read_text("utf-8") for path in texts] == [False, False]


def test_folders_that_clients_let_the_user_move_are_followed(
    kopt: Kopt, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in MOVED_BY:
        monkeypatch.setenv(name, str(user / name))
    paths = [
        kopt("setup", *words, "--print", "--json").document["path"]
        for words in (["claude", "--scope", "user"], ["codex"], ["gemini"], ["opencode"])
    ]
    assert paths == [
        str(user / "CLAUDE_CONFIG_DIR/.claude.json"),
        str(user / "CODEX_HOME/config.toml"),
        str(user / "GEMINI_CLI_HOME/.gemini/settings.json"),
        str(user / "XDG_CONFIG_HOME/opencode/opencode.json"),
    ]


def test_json_is_one_document_that_says_what_was_made(kopt: Kopt, user: Path) -> None:
    made = kopt("setup", "vscode", "--yes", "--json").document
    assert (made["schema"], made["needed"], made["made"]) == ("kopt.setup/1", True, True)
    assert Path(made["backup"]).is_file() and "+++" in made["diff"]
    again = kopt("setup", "vscode", "--json").document
    assert (again["needed"], again["made"], again["backup"]) == (False, False, None)
    refused = kopt("setup", "cursor", "--json")
    assert (refused.code, refused.document["status"]) == (2, "error")


def test_a_server_over_http_is_entered_with_the_name_of_its_token(kopt: Kopt, user: Path) -> None:
    words = ("--http", "http://127.0.0.1:8765", "--token-env", "KOPT_TOKEN", "--yes")
    ending = kopt("setup", "codex", *words)
    assert ending.code == 0 and "KOPT_TOKEN must be set where Codex is started" in ending.stdout
    text = (user / ".codex/config.toml").read_text("utf-8")
    assert 'url = "http://127.0.0.1:8765/mcp"\n' in text
    assert 'bearer_token_env_var = "KOPT_TOKEN"\n' in text and "command" not in text


def test_what_follows_the_dashes_is_handed_to_serve(kopt: Kopt, user: Path) -> None:
    kopt("setup", "claude", "--yes", "--", "--read-only", "--workspace", user / "work")
    entry = json.loads((user / "work/.mcp.json").read_text("utf-8"))["mcpServers"]["kopt"]
    assert entry["args"] == ["serve", "--read-only", "--workspace", str(user / "work")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claude", "--", "--no-such"], "--no-such"),
        (["claude", "--", "--workspace", "/no/such/folder"], "does not exist"),
        (["claude", "--", "--workspace", "."], "is relative"),
        (["claude", "--", "--http"], "over stdin and stdout"),
        (["claude", "--", "--port", "8765"], "over stdin and stdout"),
        (["claude", "--http", "ftp://h/mcp"], "is not an address"),
        (["claude", "--http", "http://me:pw@h/mcp"], "takes no password"),
        (["claude", "--http", "http://h/mcp", "--", "--read-only"], "where the server is started"),
        (["claude", "--http", "http://h/mcp", "--token-env", "a b"], "name of a variable"),
        (["claude", "--token-env", "KOPT_TOKEN"], "goes with --http"),
        (["claude-desktop", "--scope", "project"], "no project file"),
        (["claude-desktop", "--http", "http://h/mcp"], "connector"),
        (["claude", "--name", "a b"], "--name"),
        (["claude", "--name", "../x"], "--name"),
        (["claude", "--undo", "--http", "http://h/mcp"], "--undo"),
        (["claude", "--skill", "--http", "http://h/mcp"], "--skill writes no server's entry"),
        (["claude", "--skill", "--name", "kopt"], "--skill writes no server's entry"),
        (["claude", "--skill", "--problems", "."], "--skill writes no server's entry"),
        (["claude", "--skill", "--", "--read-only"], "--skill writes no server's entry"),
        (["claude-desktop", "--skill"], "Claude Desktop reads no skills from a folder"),
        (["claude", "--skill", "--undo"], "nothing to undo"),
        (["zed"], "is not one of"),
    ],
)
def test_wrong_usage_is_said_and_nothing_is_written(
    kopt: Kopt, user: Path, words: list[str], message: str
) -> None:
    before = below(user)
    ending = kopt("setup", *words[:1], "--yes", *words[1:])
    assert (ending.code, below(user)) == (2, before)
    assert message in ending.stderr


@pytest.mark.parametrize(
    ("answer", "wrote"), first_quick([(b"y\n", True), (b"n\n", False), (b"\n", False)], 1)
)
def test_on_a_terminal_it_asks(user: Path, answer: bytes, wrote: bool) -> None:
    with OnTerminal([KOPT, "setup", "cursor"], os.environ, user / "work") as terminal:
        assert b"+++ " in terminal.read_until(b"[y/N]: ") and not (user / ".cursor").exists()
        terminal.type(answer)
        assert terminal.ending() == 0
    assert (b"to undo: " if wrote else b"nothing was changed") in terminal.shown
    assert (user / ".cursor" / "mcp.json").exists() == wrote


def test_the_skill_is_shown_written_and_taken_back(kopt: Kopt, user: Path) -> None:
    before = below(user)
    shown = kopt("setup", "claude", "--skill", "--print")
    assert (shown.code, below(user)) == (0, before)
    assert "+name: kopt\n" in shown.stdout and "nothing was changed" in shown.stdout
    refused = kopt("setup", "claude", "--skill")
    assert (refused.code, below(user)) == (2, before)
    assert "  new: SKILL.md, " in refused.stdout and "no terminal" in refused.stderr
    ending = kopt("setup", "claude", "--skill", "--yes")
    path = user / "work/.claude/skills/kopt"
    assert ending.code == 0 and (path / "SKILL.md").is_file()
    assert f"wrote {path}\nnoted for --undo that no folder was there: " in ending.stdout
    assert "to undo: kopt setup claude --undo --skill\n" in ending.stdout
    assert "next: start claude" in ending.stdout
    assert kopt("setup", "claude", "--skill").stdout.endswith("nothing to do: it says so already\n")
    undone = kopt("setup", "claude", "--skill", "--undo", "--yes")
    assert undone.code == 0 and undone.stdout.endswith(f"\nremoved {path}\n")
    assert below(user) == before


def test_the_skill_goes_where_a_client_lets_the_user_move_its_folder(
    kopt: Kopt, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in MOVED_BY:
        monkeypatch.setenv(name, str(user / name))
    documents = [
        kopt("setup", client, "--skill", "--scope", "user", "--print", "--json").document
        for client in ("claude", "codex", "gemini", "opencode")
    ]
    assert [document["path"] for document in documents] == [
        str(user / "CLAUDE_CONFIG_DIR/skills/kopt"),
        str(user / ".agents/skills/kopt"),
        str(user / "GEMINI_CLI_HOME/.gemini/skills/kopt"),
        str(user / "XDG_CONFIG_HOME/opencode/skills/kopt"),
    ]
    assert {document["what"] for document in documents} == {"skill"}
    assert kopt("setup", "claude", "--print", "--json").document["what"] == "server"


def test_a_skill_that_somebody_changed_is_replaced_only_once_it_was_seen(
    kopt: Kopt, user: Path
) -> None:
    kopt("setup", "cursor", "--skill", "--yes")
    path = user / ".cursor/skills/kopt/SKILL.md"
    path.write_text("mine\n")
    before = below(user)
    refused = kopt("setup", "cursor", "--skill", "--yes")
    assert (refused.code, below(user)) == (2, before)
    assert "-mine\n" in refused.stdout
    assert "kopt did not write SKILL.md" in refused.stderr
    command: list[str | Path] = [KOPT, "setup", "cursor", "--skill", "--yes"]
    with OnTerminal(command, os.environ, user / "work") as terminal:
        assert b"-mine" in terminal.read_until(b"did not write (SKILL.md)? [y/N]: ")
        terminal.type(b"y\n")
        assert terminal.ending() == 0
    assert path.read_text("utf-8").startswith("---\nname: kopt\n")
    assert kopt("setup", "cursor", "--skill", "--undo", "--yes").code == 0
    assert path.read_text("utf-8") == "mine\n"
