"""What `kopt setup` promises, for every client: entering, leaving alone, undoing."""

import stat
from pathlib import Path

import pytest

from kopt.config.errors import KoptError, SetupError, ToolError
from kopt.server.clients.change import carry_out, plan_entry, plan_undo
from kopt.server.clients.client import McpClient
from support.client_files import (
    LOCAL,
    OTHER_SERVERS,
    REMOTE,
    all_clients,
    below,
    parsed,
    place_of,
    with_others,
)

every_client = pytest.mark.parametrize("client", all_clients(), ids=lambda client: client.key)
with_comments = [client for client in all_clients() if client.format != "json"]
with_remote = [client for client in all_clients() if client.remote is not None]


@every_client
def test_a_file_that_is_not_there_is_created_with_the_server(
    client: McpClient, tmp_path: Path
) -> None:
    place = place_of(client, tmp_path)
    change = plan_entry(place, LOCAL)
    carry_out(change, place.name)
    document = parsed(client, change.file.path)
    assert document == {**client.new_file, client.table: {"kopt": client.entry(LOCAL)}}


@every_client
def test_an_empty_file_is_filled(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = place.files[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(" \n")
    carry_out(plan_entry(place, LOCAL), place.name)
    assert parsed(client, path)[client.table]["kopt"] == client.entry(LOCAL)


@every_client
def test_every_line_of_other_servers_and_settings_stays(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    before, lines = parsed(client, path), path.read_text("utf-8").splitlines()
    carry_out(plan_entry(place, LOCAL), place.name)
    after = parsed(client, path)
    assert after[client.table].pop("kopt") == client.entry(LOCAL)
    assert after == before
    now = iter(path.read_text("utf-8").splitlines())
    # In this order; a comma may be new at the end of the line before the server.
    assert all(any(new in (line, f"{line},") for new in now) for line in lines)


@every_client
def test_a_second_setup_has_nothing_to_do(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    with_others(place)
    carry_out(plan_entry(place, LOCAL), place.name)
    again = plan_entry(place, LOCAL)
    assert (again.is_needed, again.diff) == (False, "")


@every_client
def test_a_malformed_file_is_refused_and_stays(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    path.write_text(path.read_text("utf-8").replace("[", "[ = ", 1))
    before = below(tmp_path)
    with pytest.raises(ToolError, match=r"(?s)line \d+.*[Nn]othing was changed"):
        plan_entry(place, LOCAL)
    assert below(tmp_path) == before


@every_client
def test_a_table_of_another_kind_is_refused(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = place.files[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    is_toml = client.format == "toml"
    path.write_text(f"{client.table} = 3\n" if is_toml else f'{{"{client.table}": [1]}}')
    with pytest.raises(ToolError, match=client.table):
        plan_entry(place, LOCAL)


@every_client
def test_a_read_only_file_is_refused_and_stays(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    path.chmod(0o444)
    before, change = below(tmp_path), plan_entry(place, LOCAL)
    with pytest.raises(SetupError, match="read-only"):
        carry_out(change, place.name)
    assert below(tmp_path) == before


@every_client
def test_a_linked_file_stays_a_link_and_keeps_its_mode(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    folder = place.project if place.scope == "project" else tmp_path
    dotfile = folder / "dotfiles" / "settings"
    dotfile.parent.mkdir()
    path.rename(dotfile)
    dotfile.chmod(0o640)
    path.symlink_to(dotfile)
    backup = carry_out(plan_entry(place, LOCAL), place.name)
    assert path.readlink() == dotfile
    assert stat.S_IMODE(dotfile.stat().st_mode) == 0o640
    assert "kopt" in parsed(client, dotfile)[client.table]
    assert backup is not None and backup.parent == path.parent
    assert [entry.name for entry in dotfile.parent.iterdir()] == ["settings"]


@every_client
def test_undo_restores_exactly_what_was_there(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    path.chmod(0o604)
    before = below(tmp_path)
    carry_out(plan_entry(place, LOCAL), place.name)
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    carry_out(plan_undo(place), place.name)
    assert below(tmp_path) == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@every_client
def test_undo_of_a_created_file_leaves_no_trace(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    before = below(tmp_path)
    carry_out(plan_entry(place, LOCAL), place.name)
    assert below(tmp_path) != before
    carry_out(plan_undo(place), place.name)
    assert below(tmp_path) == before


@every_client
def test_undo_leaves_alone_a_file_that_changed_since(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    carry_out(plan_entry(place, LOCAL), place.name)
    path.write_text(path.read_text("utf-8") + "\n")
    before = below(tmp_path)
    with pytest.raises(ToolError) as refusal:
        plan_undo(place)
    assert below(tmp_path) == before
    message = str(refusal.value)
    assert "has changed since" in message
    assert "\n-" in message and "/opt/kopt/bin/kopt" in message  # the diff
    assert client.take_out[place.scope].format(name="kopt") in message


@every_client
def test_undo_without_a_setup_says_so(client: McpClient, tmp_path: Path) -> None:
    place = place_of(client, tmp_path)
    with_others(place)
    with pytest.raises(ToolError, match="nothing to undo"):
        plan_undo(place)


@pytest.mark.parametrize("client", with_remote, ids=lambda client: client.key)
def test_a_server_over_http_replaces_a_local_one_without_remains(
    client: McpClient, tmp_path: Path
) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    carry_out(plan_entry(place, LOCAL), place.name)
    carry_out(plan_entry(place, REMOTE), place.name)
    entry = parsed(client, path)[client.table]["kopt"]
    assert entry == client.entry(REMOTE)
    assert "KOPT_TOKEN" in str(entry)
    carry_out(plan_entry(place, LOCAL), place.name)
    assert parsed(client, path)[client.table]["kopt"] == client.entry(LOCAL)


@pytest.mark.parametrize("client", with_comments, ids=lambda client: client.key)
def test_members_and_comments_that_the_user_added_to_the_entry_stay(
    client: McpClient, tmp_path: Path
) -> None:
    place = place_of(client, tmp_path)
    path = with_others(place)
    carry_out(plan_entry(place, LOCAL), place.name)
    text = path.read_text("utf-8")
    head = "[mcp_servers.kopt]" if client.format == "toml" else '"kopt": {'
    mine = "mine = 1 # why" if client.format == "toml" else '"mine": 1, // why'
    path.write_text(text.replace(head, f"{head}\n{mine}").replace("/opt/kopt", "/old"))
    carry_out(plan_entry(place, LOCAL), place.name)
    assert mine in path.read_text("utf-8")
    assert parsed(client, path)[client.table]["kopt"] == {"mine": 1, **client.entry(LOCAL)}


def test_comments_are_refused_where_the_client_would_refuse_the_file(tmp_path: Path) -> None:
    for client in all_clients():
        if client in with_comments:
            continue
        place = place_of(client, tmp_path)
        with_others(place).write_text(OTHER_SERVERS["jsonc"].replace("TABLE", client.table))
        with pytest.raises(KoptError, match=r"line 1, column 1.*no comments"):
            plan_entry(place, LOCAL)


def test_claude_desktop_says_that_it_takes_no_server_over_http(tmp_path: Path) -> None:
    place = place_of(next(c for c in all_clients() if c.remote is None), tmp_path)
    with pytest.raises(ToolError, match="connector"):
        plan_entry(place, REMOTE)
