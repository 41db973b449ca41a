"""One home for all simulator tests of a session: the toolset takes seconds to build."""

import pytest

from kopt.config.settings import Settings
from support.sim_run import Sim


@pytest.fixture(scope="session")
def sim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sim:
    """The simulator with two workers; parallel test processes share its caches."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    return Sim(Settings(home=shared / "sim-home", jobs=2))
