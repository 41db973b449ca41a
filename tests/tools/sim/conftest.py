"""One home for all simulator tests of a session: the toolset takes seconds to build."""

import fcntl

import pytest

from kopt.config.settings import Settings
from kopt.tools.sim.toolset import find_toolset
from support.sim_run import Sim


@pytest.fixture(scope="session")
def sim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sim:
    """The simulator with two workers; parallel test processes share its caches."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    settings = Settings(home=shared / "sim-home", jobs=2)
    with (shared / "sim-home.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait instead of building the same
        find_toolset(settings)
    return Sim(settings)
