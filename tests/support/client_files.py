"""Clients of `kopt setup` in a home folder of the test's own, and what to enter in their files."""

import json
import tomllib
from pathlib import Path
from typing import Any

from kopt.config.client_folders import ClientFolders
from kopt.server.clients.change import SetupTarget
from kopt.server.clients.client import LocalServer, McpClient, RemoteServer
from kopt.server.clients.json_edit import is_object, read_json
from kopt.server.clients.known_clients import CLIENTS

LOCAL = LocalServer("/opt/kopt/bin/kopt", ("serve",), {"CUDA_HOME": "/usr/local/cuda"})
REMOTE = RemoteServer("http://127.0.0.1:8765/mcp", "KOPT_TOKEN")

OTHER_SERVERS = {
    "json": """{
  "theme": "dark",
  "TABLE": {
    "other": {
      "command": "npx",
      "args": ["-y", "@acme/other"],
      "env": {"ACME_TOKEN": "s3cr3t"}
    }
  },
  "last": [1, 2.50, {"nested": true}]
}
""",
    "jsonc": """// My settings: do not touch.
{
    /* How it looks */
    "theme": "dark", // as at night
    "TABLE": {
        // The other one.
        "other": {
            "command": "npx", "args": ["-y", "@acme/other"], // pinned on purpose
            "env": {"ACME_TOKEN": "s3cr3t"},
        }, // until here
    },
    "last": [1, 2.50, {"nested": true}], // the end
}
""",
    "toml": """# My settings: do not touch.
model = "gpt-6"   # the large one

[TABLE.other]  # the other one
command = "npx"
args = [
  "-y",
  "@acme/other", # pinned on purpose
]
env = { ACME_TOKEN = "s3cr3t" }

[tui]
theme = 'dark'
""",
}
"""A file of each format with another server and, where the format allows them, with comments."""


def place_of(client: McpClient, root: Path, name: str = "kopt") -> SetupTarget:
    """Return the default file of `client` for a user whose home and project are below `root`."""
    home, project = root / "home", root / "project"
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    folders = ClientFolders(home=home, config=home / ".config", applications=home / ".config")
    return SetupTarget(client, client.default_scope, name, folders, project)


def with_others(place: SetupTarget) -> Path:
    """Write the file of `place` with another server in it, and return its path."""
    path = place.files[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OTHER_SERVERS[place.client.format].replace("TABLE", place.client.table))
    return path


def parsed(client: McpClient, path: Path) -> dict[str, Any]:
    """Return what the file at `path` holds, read by what is not kopt's where there is that."""
    text = path.read_text("utf-8")
    if client.format == "toml":
        return tomllib.loads(text)
    if client.format == "json":
        document: dict[str, Any] = json.loads(text)
        return document
    value = read_json(text)
    assert is_object(value)
    return value


def all_clients() -> list[McpClient]:
    """Return every client of `kopt setup`."""
    return list(CLIENTS.values())


def below(folder: Path) -> dict[str, bytes | str | None]:
    """Return everything below `folder`: bytes of a file, target of a link, None for a folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found
