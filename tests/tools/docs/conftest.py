"""Homes to search in: one whose index is built once, and one for each test that changes it."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings


@pytest.fixture(scope="session")
def shared_docs(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a home without winners."""
    return Settings(home=tmp_path_factory.mktemp("docs-home"))


@pytest.fixture
def own_docs(tmp_path: Path) -> Settings:
    """Settings of a home of this test alone."""
    return Settings(home=tmp_path / "home")
