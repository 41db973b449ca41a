"""Claude Desktop: `claude_desktop_config.json`, plain JSON, for servers that it starts itself.

It passes on little more than HOME and PATH, so the environment is written. Servers reached over
HTTP are not read from this file: they are added in the application as connectors.
"""

from pathlib import Path

from kopt.config.settings import ClientFolders

from .client import Client, ClientEntry, LocalServer

_BY_HAND = 'delete "{name}" below "mcpServers" in that file while Claude Desktop is closed'


def _user_files(folders: ClientFolders) -> tuple[Path, ...]:
    return (folders.applications / "Claude" / "claude_desktop_config.json",)


CLAUDE_DESKTOP = Client(
    key="claude-desktop",
    title="Claude Desktop",
    format="json",
    table="mcpServers",
    entry=ClientEntry(
        local=LocalServer.entry, remote=None, local_fields=frozenset(), remote_fields=frozenset()
    ),
    user_files=_user_files,
    project_files=(),
    default_scope="user",
    next_step={"user": "quit Claude Desktop and start it again: it reads the file at its start"},
    take_out={"user": _BY_HAND},
    new_file={},
)
