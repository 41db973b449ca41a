"""VS Code: `.vscode/mcp.json` of a project, or `mcp.json` of the user's default profile.

JSON with comments. The project file is the default: over SSH and in WSL it starts the server on the
machine with the project, while the user's file starts it where the window is. VS Code may have been
started from a desktop, so the environment is written.
"""

from pathlib import Path
from typing import Any

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer, RemoteServer

_START = "open the folder in VS Code and press Start above the server in .vscode/mcp.json"
_BY_HAND = 'delete "{name}" below "servers" in that file'


def _remote(server: RemoteServer) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "http", "url": server.url}
    if server.token_variable:
        entry["headers"] = {"Authorization": f"Bearer ${{env:{server.token_variable}}}"}
    return entry


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    return (folders.applications / "Code" / "User" / "mcp.json",)


VSCODE = Client(
    key="vscode",
    title="VS Code",
    format="jsonc",
    table="servers",
    entry=ClientEntry(
        local=LocalServer.typed_entry,
        remote=_remote,
        local_fields=frozenset({"command", "args", "env", "envFile", "cwd"}),
        remote_fields=frozenset({"url", "headers"}),
    ),
    user_files=_user_files,
    project_files=(".vscode/mcp.json",),
    default_scope="project",
    next_step={
        "project": _START,
        "user": "start the server with the command 'MCP: List Servers' of VS Code",
    },
    take_out={"project": _BY_HAND, "user": _BY_HAND},
    new_file={},
)
