"""An MCP client: where its servers stand, and how one is written there.

`known_clients.py` lists them. Nothing here reads a file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kopt.config.errors import ToolError
from kopt.config.settings import ClientFolders

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
