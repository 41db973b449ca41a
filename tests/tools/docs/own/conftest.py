"""A home in which nothing is built: these tests are about the index itself."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings


@pytest.fixture
def own_docs(tmp_path: Path) -> Settings:
    """Settings of a home of this test alone."""
    return Settings(home=tmp_path / "home")
