"""One home for all simulator tests of a process: the toolset takes seconds to build."""

import fcntl
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.sim.toolset import find_toolset
from support.sim_run import Sim


@pytest.fixture(scope="session")
def sim(settings: Settings, run_folder: Path) -> Sim:
    """The simulator with two workers; parallel test processes share its caches."""
    with (run_folder / "sim.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait instead of building the same
        find_toolset(settings)
    return Sim(settings)
