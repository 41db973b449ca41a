"""Claude Code: the documented project file `.mcp.json`, or the user's `~/.claude.json`.

The project file is the default. It holds servers and nothing else and only people write it, while
Claude Code keeps its own state in the user's file and rewrites that at every start. Both are plain
JSON: a comment makes Claude Code refuse the file. It passes on its whole environment, so none is
written, and no time limit either: its "timeout" would cut off long calls despite their progress.
"""

from pathlib import Path
from typing import Any

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer, RemoteServer


def _local(server: LocalServer) -> dict[str, Any]:
    return {"type": "stdio", "command": server.command, "args": list(server.arguments)}


def _remote(server: RemoteServer) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "http", "url": server.url}
    if server.token_variable:
        entry["headers"] = {"Authorization": f"Bearer ${{{server.token_variable}}}"}
    return entry


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    return ((folders.claude or folders.home) / ".claude.json",)


CLAUDE_CODE = Client(
    key="claude",
    title="Claude Code",
    format="json",
    table="mcpServers",
    entry=ClientEntry(
        local=_local,
        remote=_remote,
        local_fields=frozenset({"command", "args", "env"}),
        remote_fields=frozenset({"url", "headers", "headersHelper", "oauth"}),
    ),
    user_files=_user_files,
    project_files=(".mcp.json",),
    default_scope="project",
    next_step={
        "project": "start claude in this folder and approve the server when it asks",
        "user": "start claude; `claude mcp list` shows the server as connected",
    },
    take_out={
        "project": "claude mcp remove {name} -s project",
        "user": "claude mcp remove {name} -s user",
    },
    new_file={},
)
