"""Homes to search in, which have the index of kopt's own documents."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.built_docs import copy_docs


@pytest.fixture(scope="session")
def shared_docs(tmp_path_factory: pytest.TempPathFactory, built_docs: Path) -> Settings:
    """Settings of a home without winners."""
    return Settings(home=copy_docs(built_docs, tmp_path_factory.mktemp("docs") / "home"))


@pytest.fixture
def own_docs(tmp_path: Path, built_docs: Path) -> Settings:
    """Settings of a home of this test alone; a build takes one process, which has to start."""
    return Settings(home=copy_docs(built_docs, tmp_path / "home"), jobs=1)
