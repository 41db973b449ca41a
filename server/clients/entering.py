"""Entering one server into the text of a client's file.

What comes out is read again and compared with what was meant, so that no slip of an editor can
spoil a file: every other server and setting is then still what it was.
"""

from typing import Any

from .client import LocalServer, McpClient, Server
from .json_edit import MalformedText, UnsafeEdit, is_object, read_json, set_json
from .toml_edit import read_toml, set_toml


def enter_server(client: McpClient, text: str, name: str, server: Server) -> str:
    """Return `text`, the content of a file of `client`, with `server` in it under `name`.

    Members that the user added to the entry stay, but for those that only the other kind of server
    may have. The text comes back as it is if it says all of this already.

    Raises:
        MalformedText: The text is not what the client's format allows.
        UnsafeEdit: Its layout is one that the editor does not master.
        ToolError: The client's file holds no servers reached over HTTP.
    """
    entry = client.entry(server)
    foreign = _foreign_fields(client, server) - entry.keys()
    if not text.strip("\ufeff \t\r\n"):
        return _new_text(client, name, entry)
    is_dos = "\r\n" in text and text.count("\n") == text.count("\r\n")
    unix = text.replace("\r\n", "\n") if is_dos else text
    before = _read(client, unix)
    keys = (client.table, name)
    present = _present(before, keys) or {}
    kept = {key: value for key, value in present.items() if key not in foreign}
    wanted = _merged(kept, entry)
    edit = set_toml if client.format == "toml" else set_json
    try:
        after = edit(unix, keys, wanted, exact=kept != present)
        found = _read(client, after)
    except (ValueError, LookupError) as error:  # what tomlkit raises where it loses its way
        raise UnsafeEdit(str(error)) from error
    if found != {**before, client.table: {**before.get(client.table, {}), name: wanted}}:
        raise UnsafeEdit("other settings would not stay what they are")
    return after.replace("\n", "\r\n") if is_dos else after


def _new_text(client: McpClient, name: str, entry: dict[str, Any]) -> str:
    """Return the content of a file that holds this server and nothing else."""
    keys = (client.table, name)
    if client.format == "toml":
        return set_toml("", keys, entry)
    text = ""
    for key, value in client.new_file.items():
        text = set_json(text, (key,), value)
    return set_json(text, keys, entry)


def _foreign_fields(client: McpClient, server: Server) -> frozenset[str]:
    return client.remote_fields if isinstance(server, LocalServer) else client.local_fields


def _read(client: McpClient, text: str) -> dict[str, Any]:
    if client.format == "toml":
        return read_toml(text)
    document = read_json(text, comments=client.format == "jsonc")
    if not is_object(document):
        raise MalformedText("the file holds no object")
    return document


def _present(document: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any] | None:
    value: Any = document
    for key in keys:
        if not is_object(value):
            raise MalformedText(f"{keys[0]!r} is no object")
        if key not in value:
            return None
        value = value[key]
    if not is_object(value):
        raise MalformedText(f"{keys[-1]!r} below {keys[0]!r} is no object")
    return value


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return `old` overlaid with `new`, objects within objects too."""
    both = dict(old)
    for key, value in new.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if is_object(inner) and is_object(value) else value
    return both
