"""A package index on the loopback, asked without the proxies of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.package_server import PackageServer, package_server


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach the loopback directly."""
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def server() -> Iterator[PackageServer]:
    """An index that serves nothing yet."""
    with package_server() as served:
        yield served


@pytest.fixture
def settings(server: PackageServer, tmp_path: Path) -> Settings:
    """Settings of a home of this test, whose package index is `server`."""
    return Settings(home=tmp_path / "home", package_index=server.index)
