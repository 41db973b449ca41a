"""What the tests of the protocol share."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Return the one event loop that the server runs on."""
    return "asyncio"
