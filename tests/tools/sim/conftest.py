"""The simulator of all its tests."""

import pytest

from kopt.config.settings import Settings
from support.sim_run import Sim


@pytest.fixture(scope="session")
def sim(settings: Settings) -> Sim:
    """The simulator with two workers."""
    return Sim(settings)
