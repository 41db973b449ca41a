"""Tests with real MCP clients are collected only where KOPT_CLIENTS names their folder.

`make test-clients` installs the clients there and asks for the tests; `.ci/run` runs them with all.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.http_server import HttpServer, served
from support.real_clients import Clients
from support.shared_caches import share_caches

_INSTALLED = Path(os.environ.get("KOPT_CLIENTS") or Path(__file__).parents[2] / ".venv/clients")

collect_ignore_glob = [] if "KOPT_CLIENTS" in os.environ else ["test_with_*.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews docs/session.md."""
    parser.addoption("--write-session", action="store_true", help="write docs/session.md anew")


@pytest.fixture
def clients(tmp_path: Path, shared_caches: Path) -> Clients:
    """Return the installed clients with a home and a project folder of this test's own."""
    home, project = tmp_path / "home", tmp_path / "project"
    share_caches(home / ".kopt", shared_caches)
    project.mkdir()
    return Clients(_INSTALLED, home, project)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Iterator[HttpServer]:
    """Run `kopt serve --http` for the tests of one module."""
    scratch = tmp_path_factory.mktemp("http")
    share_caches(scratch / "home" / ".kopt", shared_caches)
    with served(scratch) as server:
        yield server
