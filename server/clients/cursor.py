"""Cursor: `~/.cursor/mcp.json`, or `.cursor/mcp.json` of a project.

Cursor may have been started from a desktop, so the environment is written.
"""

from pathlib import Path
from typing import Any

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer, RemoteServer

_ENABLE = "open Cursor's settings, MCP, and switch the server on"
_BY_HAND = 'delete "{name}" below "mcpServers" in that file'


def _remote(server: RemoteServer) -> dict[str, Any]:
    entry: dict[str, Any] = {"url": server.url}
    if server.token_variable:
        entry["headers"] = {"Authorization": f"Bearer ${{env:{server.token_variable}}}"}
    return entry


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    return (folders.home / ".cursor" / "mcp.json",)


CURSOR = Client(
    key="cursor",
    title="Cursor",
    format="jsonc",
    table="mcpServers",
    entry=ClientEntry(
        local=LocalServer.typed_entry,
        remote=_remote,
        local_fields=frozenset({"type", "command", "args", "env", "envFile"}),
        remote_fields=frozenset({"url", "headers", "auth"}),
    ),
    user_files=_user_files,
    project_files=(".cursor/mcp.json",),
    default_scope="user",
    next_step={"user": _ENABLE, "project": _ENABLE},
    take_out={"user": _BY_HAND, "project": _BY_HAND},
    new_file={},
)
