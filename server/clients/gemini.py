"""Gemini CLI: `settings.json` in `~/.gemini`, or in `.gemini` of a trusted project.

JSON with comments. Gemini CLI keeps back variables whose names look like secrets, and others where
a sandbox is on, so the environment is written. Its own limit of 10 minutes a call is left alone.
"""

from pathlib import Path
from typing import Any

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer, RemoteServer


def _remote(server: RemoteServer) -> dict[str, Any]:
    entry: dict[str, Any] = {"url": server.url, "type": "http"}
    if server.token_variable:
        entry["headers"] = {"Authorization": f"Bearer ${{{server.token_variable}}}"}
    return entry


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    return ((folders.gemini or folders.home) / ".gemini" / "settings.json",)


GEMINI = Client(
    key="gemini",
    title="Gemini CLI",
    format="jsonc",
    table="mcpServers",
    entry=ClientEntry(
        local=LocalServer.entry,
        remote=_remote,
        local_fields=frozenset({"command", "args", "env", "cwd"}),
        remote_fields=frozenset({"url", "httpUrl", "type", "headers", "oauth"}),
    ),
    user_files=_user_files,
    project_files=(".gemini/settings.json",),
    default_scope="user",
    next_step={
        "user": "start gemini; `gemini mcp list` shows the server as connected in a trusted folder",
        "project": "start gemini in this folder and trust it when it asks",
    },
    take_out={
        "user": "gemini mcp remove -s user {name}",
        "project": "gemini mcp remove -s project {name}",
    },
    new_file={},
)
