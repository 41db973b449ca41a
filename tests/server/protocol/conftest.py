"""What the tests of the protocol share."""

from pathlib import Path

import pytest

from kopt.tools.selftest.sample import SAMPLES
from support.built_docs import build_docs, copy_docs


@pytest.fixture
def anyio_backend() -> str:
    """Return the one event loop that the server runs on."""
    return "asyncio"


@pytest.fixture(scope="session")
def docs_of_samples(run_folder: Path) -> Path:
    """Return a folder with the index of kopt's own documents and the samples' problems."""
    return build_docs(run_folder / "docs-of-samples", SAMPLES / "problems")


@pytest.fixture
def home(tmp_path: Path, docs_of_samples: Path) -> Path:
    """Return a home where documents can be searched at once."""
    return copy_docs(docs_of_samples, tmp_path / "home")
