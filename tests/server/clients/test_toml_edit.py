"""Edits of TOML text: however the tables are written, the rest stays."""

import tomllib

import pytest

from kopt.server.clients.json_edit import MalformedText
from kopt.server.clients.toml_edit import set_toml

SERVER = {"command": "/k", "args": ["serve"], "env": {"A": "1"}}
BLOCK = '[mcp_servers.k]\ncommand = "/k"\nargs = ["serve"]\n\n[mcp_servers.k.env]\nA = "1"\n'
KEYS = ("mcp_servers", "k")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        "a = 1 # why\n",
        "[mcp_servers]\n",
        '[mcp_servers.other]\ncommand = "x"\n',
        '[mcp_servers.other]\nurl = "x"\n[tui]\nb = 1\n[[list]]\nc = 2\n',
        'mcp_servers.other.command = "x"\n[tui]\nb = 1\n',
    ],
)
def test_a_new_server_stands_behind_the_last_line(text: str) -> None:
    edited = set_toml(text, KEYS, SERVER)
    assert edited.startswith(text)
    before = tomllib.loads(text)
    servers = {**before.get("mcp_servers", {}), "k": SERVER}
    assert tomllib.loads(edited) == {**before, "mcp_servers": servers}


def test_a_blank_line_stands_above_the_new_table() -> None:
    assert set_toml("a = 1", KEYS, SERVER) == f"a = 1\n\n{BLOCK}"


def test_an_inline_table_takes_the_server_inline() -> None:
    text = 'mcp_servers = { other = { command = "x" } } # all of them\n[tui] # c\nb = 1\n'
    edited = set_toml(text, KEYS, SERVER)
    assert tomllib.loads(edited)["mcp_servers"] == {"other": {"command": "x"}, "k": SERVER}
    assert "# all of them\n[tui] # c\nb = 1\n" in edited


def test_only_the_keys_that_differ_are_touched() -> None:
    text = (
        '[mcp_servers.k] # mine\ncommand = "/old" # a\nargs = [\n  "serve", # b\n]\n'
        'enabled = false # c\nenv = { B = "2" }\n\n[tui]\nb = 1\n'
    )
    edited = set_toml(text, KEYS, SERVER)
    assert tomllib.loads(edited)["mcp_servers"]["k"] == {
        **SERVER,
        "enabled": False,
        "env": {"B": "2", "A": "1"},
    }
    changed = text.replace('"/old"', '"/k"').replace('{ B = "2" }', '{ B = "2", A = "1" }')
    assert edited.replace(" ", "") == changed.replace(" ", "")


def test_replacing_leaves_out_what_the_new_value_does_not_have() -> None:
    text = (
        '[mcp_servers.k]\nurl = "x" # a\nmine = 1 # b\n\n[mcp_servers.k.env]\nA = "2"\n[tui]\nb = 1'
    )
    edited = set_toml(text, KEYS, {"mine": 1, "command": "/k"}, exact=True)
    assert tomllib.loads(edited) == {
        "mcp_servers": {"k": {"mine": 1, "command": "/k"}},
        "tui": {"b": 1},
    }
    assert "mine = 1 # b" in edited


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "Invalid value"),
        ("[a]\n[a]\n", "line 2"),
        ("mcp_servers = 3\n", "'mcp_servers' is no table"),
        ("[[mcp_servers]]\na = 1\n", "'mcp_servers' is no table"),
        ("[mcp_servers]\nk = 3\n", "'k' is no table"),
    ],
)
def test_what_cannot_take_a_server_is_refused(text: str, message: str) -> None:
    with pytest.raises(MalformedText, match=message):
        set_toml(text, KEYS, SERVER)
