"""Changes on disk: backups, races, names, and what a diff may show."""

import os
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.server.clients.change import carry_out, diff_of, plan_entry, plan_undo
from kopt.server.clients.json_edit import set_json
from kopt.server.clients.known_clients import CLIENTS
from support.client_files import LOCAL, REMOTE, below, parsed, place_of, with_others

CURSOR, CODEX, OPENCODE = CLIENTS["cursor"], CLIENTS["codex"], CLIENTS["opencode"]


def test_a_file_that_changes_between_showing_and_writing_is_left_alone(tmp_path: Path) -> None:
    place = place_of(CURSOR, tmp_path)
    path = with_others(place)
    change = plan_entry(place, LOCAL)
    path.write_text("{}")
    with pytest.raises(SetupError, match="in the meantime"):
        carry_out(change, place.name)
    assert (path.read_text("utf-8"), len(list(path.parent.iterdir()))) == ("{}", 1)


def test_a_failed_write_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of(CURSOR, tmp_path)
    with_others(place)
    before = below(tmp_path)

    def fail(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(SetupError, match="No space left"):
        carry_out(plan_entry(place, LOCAL), place.name)
    assert below(tmp_path) == before


def test_a_folder_in_the_place_of_the_file_is_reported(tmp_path: Path) -> None:
    place = place_of(CURSOR, tmp_path)
    place.files[-1].mkdir(parents=True)
    with pytest.raises(SetupError, match="Is a directory"):
        plan_entry(place, LOCAL)


def test_a_link_to_nothing_creates_what_it_points_to(tmp_path: Path) -> None:
    place = place_of(CURSOR, tmp_path)
    path, dotfile = place.files[-1], tmp_path / "dotfiles" / "mcp.json"
    path.parent.mkdir()
    path.symlink_to(dotfile)
    before = below(tmp_path)
    carry_out(plan_entry(place, LOCAL), place.name)
    assert path.is_symlink() and "kopt" in parsed(CURSOR, dotfile)["mcpServers"]
    carry_out(plan_undo(place), place.name)
    assert below(tmp_path) == before


def test_a_circle_of_links_is_reported(tmp_path: Path) -> None:
    place = place_of(CURSOR, tmp_path)
    path = place.files[-1]
    path.parent.mkdir()
    path.symlink_to(path)
    with pytest.raises(SetupError, match="symbolic links"):
        plan_entry(place, LOCAL)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    place = place_of(CURSOR, tmp_path)
    with_others(place).write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ToolError, match="not UTF-8"):
        plan_entry(place, LOCAL)


def test_the_file_of_another_user_keeps_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(CURSOR, tmp_path)
    path = with_others(place)
    owners: list[tuple[int, int]] = []
    status = path.stat()
    monkeypatch.setattr(os, "geteuid", lambda: status.st_uid + 1)

    def record(_: Path, uid: int, gid: int) -> None:
        owners.append((uid, gid))

    monkeypatch.setattr(os, "chown", record)
    carry_out(plan_entry(place, LOCAL), place.name)
    assert owners == [(status.st_uid, status.st_gid)]


def test_a_new_file_of_the_user_is_theirs_alone_and_one_of_a_project_is_shared(
    tmp_path: Path,
) -> None:
    umask = os.umask(0o022)
    try:
        modes: list[int] = []
        for client in (CURSOR, CLIENTS["vscode"]):
            place = place_of(client, tmp_path)
            carry_out(plan_entry(place, LOCAL), place.name)
            modes.append(place.files[-1].stat().st_mode & 0o777)
    finally:
        os.umask(umask)
    assert modes == [0o600, 0o644]


def test_several_setups_are_undone_one_by_one(tmp_path: Path) -> None:
    place = place_of(CODEX, tmp_path)
    with_others(place)
    states = [below(tmp_path)]
    for server in (LOCAL, REMOTE):
        carry_out(plan_entry(place, server), place.name)
        states.append(below(tmp_path))
    while states.pop() and states:
        carry_out(plan_undo(place), place.name)
        assert below(tmp_path) == states[-1]
    with pytest.raises(ToolError, match="nothing to undo"):
        plan_undo(place)


def test_two_names_in_one_file_are_two_servers(tmp_path: Path) -> None:
    first, second = (place_of(CURSOR, tmp_path, name) for name in ("kopt", "kopt-gpu"))
    path = with_others(first)
    before = path.read_bytes()
    for place in (first, second):
        carry_out(plan_entry(place, LOCAL), place.name)
    assert parsed(CURSOR, path)["mcpServers"].keys() == {"other", "kopt", "kopt-gpu"}
    with pytest.raises(ToolError, match="has changed since"):
        plan_undo(first)
    for place in (second, first):
        carry_out(plan_undo(place), place.name)
    assert path.read_bytes() == before


def test_opencode_uses_the_file_that_wins(tmp_path: Path) -> None:
    place = place_of(OPENCODE, tmp_path)
    with_others(place)
    winner = place.files[0]
    winner.write_text("{}\n")
    assert plan_entry(place, LOCAL).file.path == winner


def test_an_edit_that_would_lose_another_setting_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(_: str, keys: tuple[str, ...], value: dict[str, Any], *, exact: bool) -> str:
        return set_json("", keys, value, exact=exact)

    monkeypatch.setattr("kopt.server.clients.client.set_json", careless)
    place = place_of(CURSOR, tmp_path)
    with_others(place)
    with pytest.raises(ToolError, match=r"no safe edit .*Nothing was changed; delete 'kopt' there"):
        plan_entry(place, LOCAL)


def test_mixed_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    for client in (CURSOR, CODEX):
        place = place_of(client, tmp_path)
        path = with_others(place)
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n", 2))
        carry_out(plan_entry(place, LOCAL), place.name)
        assert path.read_bytes().count(b"\r\n") == 2


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('"ACME_TOKEN": "s3cr3t"', '"ACME_TOKEN": "***"'),
        ('"Authorization": "Bearer s3cr3t"', '"Authorization": "***"'),
        ('"env": {"A": "1", "api_key": "s3\\"cr3t"}', '"env": {"A": "1", "api_key": "***"}'),
        ("env = { DB_PASSWORD = 's3cr3t' }", "env = { DB_PASSWORD = '***' }"),
        ('client_secret = "s3cr3t" # c', 'client_secret = "***" # c'),
        (
            '"Authorization": "Bearer ${env:KOPT_TOKEN}"',
            '"Authorization": "Bearer ${env:KOPT_TOKEN}"',
        ),
        ('"args": ["-H", "X: Bearer s3cr3t"]', '"args": ["-H", "X: Bearer ***"]'),
        ('"url": "https://me:s3cr3t@h:8/mcp"', '"url": "https://***@h:8/mcp"'),
        ('"url": "https://host:8765/mcp"', '"url": "https://host:8765/mcp"'),
        ('"command": "/opt/token/bin"', '"command": "/opt/token/bin"'),
        ('bearer_token_env_var = "KOPT_TOKEN"', 'bearer_token_env_var = "KOPT_TOKEN"'),
        ('"args": ["--api-key", "hunter2", "-v"]', '"args": ["--api-key", "***", "-v"]'),
        ("args = ['--key', 'hunter2']", "args = ['--key', '***']"),
        ('"args": ["--use-token", "--verbose"]', '"args": ["--use-token", "--verbose"]'),
        ('"args": ["--token", "${ACME}"]', '"args": ["--token", "${ACME}"]'),
        ('"args": ["--api-key=hunter2", "-v"]', '"args": ["--api-key=***", "-v"]'),
        ('"args": ["-e", "DB_PASSWORD=hunter2"]', '"args": ["-e", "DB_PASSWORD=***"]'),
        ('"args": ["-H", "X-Api-Key: a b"]', '"args": ["-H", "X-Api-Key: ***"]'),
        ('"args": ["postgres://me:p@ss@h/db"]', '"args": ["postgres://***@h/db"]'),
        ('"url": "https://hunter2@h/mcp"', '"url": "https://***@h/mcp"'),
        ('"url": "https://h/mcp?token=hunter2"', '"url": "https://h/mcp?token=***"'),
        ('"args": ["ghp_0123456789abcdefghij"]', '"args": ["***"]'),
        ('"args": ["-x", "0123456789abcdef0123"]', '"args": ["-x", "***"]'),
        ('"args": ["--x=0123456789abcdef0123=="]', '"args": ["--x=***"]'),
        ('"id": "123e4567-e89b-12d3-a456-426614174000"', '"id": "***"'),
        (
            '"args": ["@acme/server-with-a-long-name-2"]',
            '"args": ["@acme/server-with-a-long-name-2"]',
        ),
        ('"args": ["/tmp/0123456789abcdef0123/x"]', '"args": ["/tmp/0123456789abcdef0123/x"]'),
        ('"model": "claude-sonnet-4-5-20250929"', '"model": "claude-sonnet-4-5-20250929"'),
    ],
)
def test_a_diff_shows_no_secrets_but_what_they_are_called(line: str, shown: str) -> None:
    diff = diff_of(Path("f"), f"{line}\na\n".encode(), f"{line}\nb\n".encode())
    assert diff.splitlines()[3:] == [f" {shown}", "-a", "+b"]


def test_a_secret_is_masked_that_stands_on_the_line_below_its_flag() -> None:
    text = '"args": [\n  "--api-key",\n  "hunter2"\n]\n'
    assert "hunter2" not in diff_of(Path("f"), None, text.encode())


def test_a_secret_that_changed_is_seen_to_have_changed() -> None:
    before, after = (f'{{"a_token": "{value}"}}\n'.encode() for value in ("old", "new"))
    diff = diff_of(Path("f"), before, after)
    assert diff.splitlines()[3:] == ['-{"a_token": "***"}', '+{"a_token": "***"}']


@pytest.mark.parametrize("end", ["\u2028", "\x0b", "\r"])
def test_a_secret_with_an_odd_line_end_in_it_is_masked(end: str) -> None:
    text = f'"a_token": "hun{end}ter2"\n"b": 1\n'
    assert "hun" not in diff_of(Path("f"), None, text.encode())


@pytest.mark.parametrize("text", ["x" * 300_000, "token" * 60_000, '"' * 100_000, "://" * 100_000])
def test_a_long_line_is_shown_soon(text: str) -> None:
    """A pattern that tries each part of a line anew would take minutes."""
    assert diff_of(Path("f"), None, text.encode()).count("\n") == 4
