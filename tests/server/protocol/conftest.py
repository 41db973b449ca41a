"""What the tests of the protocol share."""

from pathlib import Path

import pytest

from kopt.tools.selftest.sample import SAMPLES
from support.built_docs import build_docs


@pytest.fixture
def anyio_backend() -> str:
    """Return the one event loop that the server runs on."""
    return "asyncio"


@pytest.fixture(scope="session")
def docs_of_samples(run_folder: Path) -> Path:
    """Return a folder with the index of kopt's own documents and the samples' problems."""
    return build_docs(run_folder / "docs-of-samples", SAMPLES / "problems")
