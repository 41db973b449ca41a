"""Jobs in folders of their own; the compile caches are shared with the other tests."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from support.job_works import job_settings


@pytest.fixture
def anyio_backend() -> str:
    """Return the event loop that the server runs on."""
    return "asyncio"


@pytest.fixture
def settings(tmp_path: Path, shared_home: Path) -> Settings:
    """Return settings without jobs."""
    return job_settings(tmp_path / "home", shared_home)


@pytest.fixture
async def host(settings: Settings, anyio_backend: str) -> AsyncGenerator[JobHost]:
    """Give a host that is closed afterwards."""
    del anyio_backend
    host = JobHost(settings)
    yield host
    await host.close()
