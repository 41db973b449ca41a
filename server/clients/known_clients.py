"""The clients that `kopt setup` knows, by the names of the command line.

Clients that may be started from a desktop, or keep variables back, get the environment written.
"""

from typing import Any

from .client import LocalServer, McpClient, RemoteServer, SkillsOfClient

CODEX_LIMITS = {"required": True, "startup_timeout_sec": 30, "tool_timeout_sec": 300}
"""Required: else a first request may go out before the server has told its tools. Older versions of
Codex end a start after 10 s and a call after 60 s; kopt's return after 50 s at most."""
OPENCODE_CALL_TIMEOUT_MS = 120_000


def _codex_local(server: LocalServer) -> dict[str, Any]:
    entry = {
        "command": server.command,
        "args": list(server.arguments),
        **CODEX_LIMITS,
    }
    return entry | ({"env": dict(server.environment)} if server.environment else {})


def _codex_remote(server: RemoteServer) -> dict[str, Any]:
    variable = server.token_variable
    token = {"bearer_token_env_var": variable} if variable else {}
    return {"url": server.url, **CODEX_LIMITS, **token}


def _opencode_local(server: LocalServer) -> dict[str, Any]:
    command = [server.command, *server.arguments]
    return {"type": "local", "command": command, "timeout": OPENCODE_CALL_TIMEOUT_MS}


def _opencode_remote(server: RemoteServer) -> dict[str, Any]:
    entry = {"type": "remote", "url": server.url, "timeout": OPENCODE_CALL_TIMEOUT_MS}
    return {**entry, **server.headers("{{env:{}}}")}


# The project file is the default: it holds servers and nothing else and only people write it, while
# Claude Code keeps its own state in the user's file and rewrites that at every start. A comment
# makes Claude Code refuse the file. It passes on its whole environment, so none is written, and no
# time limit either: its "timeout" would cut off long calls despite their progress.
CLAUDE_CODE = McpClient(
    key="claude",
    title="Claude Code",
    format="json",
    table="mcpServers",
    local=lambda server: {
        "type": "stdio",
        "command": server.command,
        "args": list(server.arguments),
    },
    remote=lambda server: {"type": "http", "url": server.url, **server.headers("${{{}}}")},
    local_fields=frozenset({"command", "args", "env"}),
    remote_fields=frozenset({"url", "headers", "headersHelper", "oauth"}),
    user_files=lambda folders: ((folders.claude or folders.home) / ".claude.json",),
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
    skills=SkillsOfClient(
        user=lambda folders: (folders.claude or folders.home / ".claude") / "skills",
        project=".claude/skills",
        next_step="start claude; /kopt calls the skill, and Claude takes it up by itself",
    ),
)
# Servers over HTTP are not read from this file: they are added in the application as connectors.
CLAUDE_DESKTOP = McpClient(
    key="claude-desktop",
    title="Claude Desktop",
    format="json",
    table="mcpServers",
    local=LocalServer.entry,
    remote=None,
    local_fields=frozenset(),
    remote_fields=frozenset(),
    user_files=lambda folders: (folders.applications / "Claude" / "claude_desktop_config.json",),
    project_files=(),
    default_scope="user",
    next_step={"user": "quit Claude Desktop and start it again: it reads the file at its start"},
    take_out={
        "user": 'delete "{name}" below "mcpServers" in that file while Claude Desktop is closed'
    },
)
CODEX = McpClient(
    key="codex",
    title="Codex",
    format="toml",
    table="mcp_servers",
    local=_codex_local,
    remote=_codex_remote,
    local_fields=frozenset({"command", "args", "env", "env_vars", "cwd"}),
    remote_fields=frozenset({"url", "bearer_token_env_var", "http_headers", "env_http_headers"}),
    user_files=lambda folders: ((folders.codex or folders.home / ".codex") / "config.toml",),
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
    skills=SkillsOfClient(
        user=lambda folders: folders.home / ".agents" / "skills",
        project=".agents/skills",
        next_step="start codex; $kopt calls the skill, and Codex takes it up by itself",
    ),
)
# Its own limit of 10 minutes a call is left alone.
GEMINI = McpClient(
    key="gemini",
    title="Gemini CLI",
    format="jsonc",
    table="mcpServers",
    local=LocalServer.entry,
    remote=lambda server: {"url": server.url, "type": "http", **server.headers("${{{}}}")},
    local_fields=frozenset({"command", "args", "env", "cwd"}),
    remote_fields=frozenset({"url", "httpUrl", "type", "headers", "oauth"}),
    user_files=lambda folders: ((folders.gemini or folders.home) / ".gemini" / "settings.json",),
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
    skills=SkillsOfClient(
        user=lambda folders: (folders.gemini or folders.home) / ".gemini" / "skills",
        project=".gemini/skills",
        next_step="start gemini in a trusted folder; `gemini skills list` names the skill",
    ),
)
# The project file is the default: over SSH and in WSL it starts the server on the machine with the
# project, while the user's file starts it where the window is.
VSCODE = McpClient(
    key="vscode",
    title="VS Code",
    format="jsonc",
    table="servers",
    local=LocalServer.typed_entry,
    remote=lambda server: {"type": "http", "url": server.url, **server.headers("${{env:{}}}")},
    local_fields=frozenset({"command", "args", "env", "envFile", "cwd"}),
    remote_fields=frozenset({"url", "headers"}),
    user_files=lambda folders: (folders.applications / "Code" / "User" / "mcp.json",),
    project_files=(".vscode/mcp.json",),
    default_scope="project",
    next_step={
        "project": "open the folder in VS Code and press Start above the server in"
        " .vscode/mcp.json",
        "user": "start the server with the command 'MCP: List Servers' of VS Code",
    },
    take_out=dict.fromkeys(("project", "user"), 'delete "{name}" below "servers" in that file'),
    skills=SkillsOfClient(
        user=lambda folders: folders.home / ".copilot" / "skills",
        project=".github/skills",
        next_step="open Copilot Chat in agent mode; /kopt calls the skill",
    ),
)
CURSOR = McpClient(
    key="cursor",
    title="Cursor",
    format="jsonc",
    table="mcpServers",
    local=LocalServer.typed_entry,
    remote=lambda server: {"url": server.url, **server.headers("${{env:{}}}")},
    local_fields=frozenset({"type", "command", "args", "env", "envFile"}),
    remote_fields=frozenset({"url", "headers", "auth"}),
    user_files=lambda folders: (folders.home / ".cursor" / "mcp.json",),
    project_files=(".cursor/mcp.json",),
    default_scope="user",
    next_step=dict.fromkeys(
        ("user", "project"), "open Cursor's settings, MCP, and switch the server on"
    ),
    take_out=dict.fromkeys(("user", "project"), 'delete "{name}" below "mcpServers" in that file'),
    skills=SkillsOfClient(
        user=lambda folders: folders.home / ".cursor" / "skills",
        project=".cursor/skills",
        next_step="start Cursor; /kopt in its chat calls the skill",
    ),
)
# Where both files exist the .jsonc one wins. It passes on its whole environment: none is written.
OPENCODE = McpClient(
    key="opencode",
    title="opencode",
    format="jsonc",
    table="mcp",
    local=_opencode_local,
    remote=_opencode_remote,
    local_fields=frozenset({"command", "environment", "cwd"}),
    remote_fields=frozenset({"url", "headers", "oauth"}),
    user_files=lambda folders: (
        folders.config / "opencode" / "opencode.jsonc",
        folders.config / "opencode" / "opencode.json",
    ),
    project_files=("opencode.jsonc", "opencode.json"),
    default_scope="user",
    next_step={
        "user": "start opencode; `opencode mcp list` shows the server as connected",
        "project": "start opencode in this folder; `opencode mcp list` shows the server",
    },
    take_out=dict.fromkeys(("user", "project"), 'delete "{name}" below "mcp" in that file'),
    new_file={"$schema": "https://opencode.ai/config.json"},
    skills=SkillsOfClient(
        user=lambda folders: folders.config / "opencode" / "skills",
        project=".opencode/skills",
        next_step="start opencode; its agent loads the skill when it needs it",
    ),
)
CLIENTS: dict[str, McpClient] = {
    client.key: client
    for client in (CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, GEMINI, VSCODE, CURSOR, OPENCODE)
}
