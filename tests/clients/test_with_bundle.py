"""The .mcpb bundle as `make bundle` packs it, read by the tool of its format."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.real_clients import Clients

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "packaging" / "mcpb" / "manifest.json"


@pytest.fixture
def unpacked(clients: Clients) -> Path:
    """Return a folder with what is in the bundle, called `kopt` like the package that it is."""
    path = f"{clients.installed / 'bin'}:{os.environ['PATH']}"
    bundle = clients.home / "kopt.mcpb"
    words = ["make", "bundle", f"MCPB={clients.installed / 'bin' / 'mcpb'}", f"BUNDLE={bundle}"]
    subprocess.run(words, cwd=ROOT, env={"HOME": str(clients.home), "PATH": path}, check=True)
    ending = clients.run("mcpb", "unpack", bundle, clients.project / "kopt")
    assert ending.code == 0, ending.stderr
    return clients.project / "kopt"


def test_manifest_is_valid(clients: Clients) -> None:
    ending = clients.run("mcpb", "validate", MANIFEST)
    assert (ending.code, "passes" in ending.stdout) == (0, True), ending.stdout + ending.stderr


def test_bundle_holds_a_whole_server(clients: Clients, unpacked: Path) -> None:
    assert json.loads((unpacked / "manifest.json").read_text("utf-8"))["name"] == "kopt-mcp"
    # From its folder, with the libraries of .venv: uv would install them first.
    server = [sys.executable, "-m", "kopt", "serve"]
    call = ["--method", "tools/call", "--tool-name", "list_kernels"]
    words = [*server, *call, "-e", f"PYTHONPATH={unpacked.parent}"]
    ending = clients.run("mcp-inspector", "--cli", *words)
    assert ending.code == 0, ending.stderr
    kernels = json.dumps(ending.document["structuredContent"])
    assert "silu_and_mul" in kernels
