"""An MCP client: where its servers stand, and how one is entered in the text of its file.

`known_clients.py` lists them. Nothing here reads a file. A text that was edited is read again and
compared with what was meant, so that no slip of an editor can spoil it: every other server and
setting is then still what it was.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kopt.config.client_folders import ClientFolders
from kopt.config.errors import ToolError

from .json_edit import MalformedText, UnsafeEdit, is_object, read_json, set_json
from .toml_edit import read_toml, set_toml

Format = Literal["json", "jsonc", "toml"]
Scope = Literal["user", "project"]


@dataclass(frozen=True)
class LocalServer:
    """A server that the client starts, and talks to over stdin and stdout."""

    command: str
    """Absolute path: clients started from a desktop have another PATH."""
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """Variables for clients that do not pass on the environment of a shell."""

    def entry(self) -> dict[str, Any]:
        """Return the entry that most clients read: command, args, and env if there is any."""
        entry: dict[str, Any] = {"command": self.command, "args": list(self.arguments)}
        return entry | ({"env": dict(self.environment)} if self.environment else {})

    def typed_entry(self) -> dict[str, Any]:
        """Return the entry behind the kind of transport, where a client wants to be told."""
        return {"type": "stdio", **self.entry()}


@dataclass(frozen=True)
class RemoteServer:
    """A server that runs already, reached over HTTP."""

    url: str
    token_variable: str | None
    """The environment variable that holds the bearer token; the token itself is never written."""

    def headers(self, reference: str) -> dict[str, Any]:
        """Return the member with the token's header; `reference` is how a variable is named."""
        if not self.token_variable:
            return {}
        return {"headers": {"Authorization": f"Bearer {reference.format(self.token_variable)}"}}


Server = LocalServer | RemoteServer


@dataclass(frozen=True)
class SkillsOfClient:
    """The folders that a client reads skills from, each in a folder of its own."""

    user: Callable[[ClientFolders], Path]
    """The user's."""
    project: str
    """The one below a project's folder."""
    next_step: str
    """The user's next step once the skill is written."""

    def folder(self, scope: Scope, folders: ClientFolders, project: Path) -> Path:
        """Return the folder of `scope`."""
        return self.user(folders) if scope == "user" else project / self.project


@dataclass(frozen=True)
class McpClient:
    """One MCP client."""

    key: str
    """The client's name on the command line."""
    title: str
    format: Format
    table: str
    """The object of the file that holds the servers by name."""
    local: Callable[[LocalServer], dict[str, Any]]
    """The entry of a server that the client starts."""
    remote: Callable[[RemoteServer], dict[str, Any]] | None
    """The entry of a server over HTTP; None: the client's file holds none."""
    local_fields: frozenset[str]
    """Fields that have no place in a remote server's entry."""
    remote_fields: frozenset[str]
    """Fields that have no place in a local server's entry."""
    user_files: Callable[[ClientFolders], tuple[Path, ...]]
    """The user's own files, the one that wins first; the last is created where none exists."""
    project_files: tuple[str, ...]
    """Files below a project's folder, the one that wins first; empty: there is no such file."""
    default_scope: Scope
    next_step: Mapping[Scope, str]
    """The user's next step once the file is written."""
    take_out: Mapping[Scope, str]
    """The way to take the server out by hand; {name} is its name."""
    new_file: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Content, beside the server, of a file that kopt creates."""
    skills: SkillsOfClient | None = None
    """Where it reads skills from; None: it reads none from a folder."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that the client has files for, its default first."""
        if not self.project_files:
            return ("user",)
        other: Scope = "project" if self.default_scope == "user" else "user"
        return (self.default_scope, other)

    def files(self, scope: Scope, folders: ClientFolders, project: Path) -> tuple[Path, ...]:
        """Return the files of `scope`, the one that wins first."""
        if scope == "user":
            return self.user_files(folders)
        return tuple(project / name for name in self.project_files)

    def entry(self, server: Server) -> dict[str, Any]:
        """Return how the client writes `server` down.

        Raises:
            ToolError: The client's file holds no servers reached over HTTP.
        """
        if isinstance(server, LocalServer):
            return self.local(server)
        if self.remote is None:
            raise ToolError(
                f"{self.title} reads no servers over HTTP from its file: add {server.url} in its"
                " settings as a connector, or leave out --http"
            )
        return self.remote(server)


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
