"""Codex: `config.toml` in `~/.codex` (or CODEX_HOME), or `.codex/config.toml` of a trusted project.

Codex passes on little more than HOME, PATH and TERM, so the environment is written. The limits are
written because older versions end a call after 60 s and a start after 10 s; kopt's calls return
after 50 s at most.
"""

from pathlib import Path
from typing import Any

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer, RemoteServer

STARTUP_TIMEOUT_S = 30
CALL_TIMEOUT_S = 300


def _local(server: LocalServer) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "command": server.command,
        "args": list(server.arguments),
        "startup_timeout_sec": STARTUP_TIMEOUT_S,
        "tool_timeout_sec": CALL_TIMEOUT_S,
    }
    if server.environment:
        entry["env"] = dict(server.environment)
    return entry


def _remote(server: RemoteServer) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "url": server.url,
        "startup_timeout_sec": STARTUP_TIMEOUT_S,
        "tool_timeout_sec": CALL_TIMEOUT_S,
    }
    if server.token_variable:
        entry["bearer_token_env_var"] = server.token_variable
    return entry


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    return ((folders.codex or folders.home / ".codex") / "config.toml",)


CODEX = Client(
    key="codex",
    title="Codex",
    format="toml",
    table="mcp_servers",
    entry=ClientEntry(
        local=_local,
        remote=_remote,
        local_fields=frozenset({"command", "args", "env", "env_vars", "cwd"}),
        remote_fields=frozenset(
            {"url", "bearer_token_env_var", "http_headers", "env_http_headers"}
        ),
    ),
    user_files=_user_files,
    project_files=(".codex/config.toml",),
    default_scope="user",
    next_step={
        "user": "start codex; `codex mcp list` names the server",
        "project": "start codex in this folder and trust it when it asks",
    },
    take_out={
        "user": "codex mcp remove {name}",
        "project": "delete the table [mcp_servers.{name}] in that file",
    },
    new_file={},
)
