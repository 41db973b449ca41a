"""opencode: `opencode.jsonc` or `opencode.json` in `~/.config/opencode`, or in a project's folder.

JSON with comments; where both files exist the `.jsonc` one wins. opencode passes on its whole
environment, so none is written. A call is given two minutes: kopt's return after 50 s at most.
"""

from pathlib import Path
from typing import Any

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer, RemoteServer

CALL_TIMEOUT_MS = 120_000
_BY_HAND = 'delete "{name}" below "mcp" in that file'


def _local(server: LocalServer) -> dict[str, Any]:
    return {
        "type": "local",
        "command": [server.command, *server.arguments],
        "timeout": CALL_TIMEOUT_MS,
    }


def _remote(server: RemoteServer) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "remote", "url": server.url, "timeout": CALL_TIMEOUT_MS}
    if server.token_variable:
        entry["headers"] = {"Authorization": f"Bearer {{env:{server.token_variable}}}"}
    return entry


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    folder = folders.config / "opencode"
    return (folder / "opencode.jsonc", folder / "opencode.json")


OPENCODE = Client(
    key="opencode",
    title="opencode",
    format="jsonc",
    table="mcp",
    entry=ClientEntry(
        local=_local,
        remote=_remote,
        local_fields=frozenset({"command", "environment", "cwd"}),
        remote_fields=frozenset({"url", "headers", "oauth"}),
    ),
    user_files=_user_files,
    project_files=("opencode.jsonc", "opencode.json"),
    default_scope="user",
    next_step={
        "user": "start opencode; `opencode mcp list` shows the server as connected",
        "project": "start opencode in this folder; `opencode mcp list` shows the server",
    },
    take_out={"user": _BY_HAND, "project": _BY_HAND},
    new_file={"$schema": "https://opencode.ai/config.json"},
)
