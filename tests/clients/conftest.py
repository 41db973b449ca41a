"""Tests with real MCP clients are collected only where KOPT_CLIENTS names their folder.

`make test-clients` installs the clients there and asks for the tests.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.http_server import HttpServer, served
from support.real_clients import Clients

collect_ignore_glob = [] if "KOPT_CLIENTS" in os.environ else ["test_with_*.py"]


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    """Return the installed clients with a home and a project folder of this test's own."""
    return Clients(Path(os.environ["KOPT_CLIENTS"]), tmp_path)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """Run `kopt serve --http` for the tests of one module."""
    with served(tmp_path_factory.mktemp("http")) as server:
        yield server
