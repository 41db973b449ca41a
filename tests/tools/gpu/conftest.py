"""A `cuda:N` device whose workers play a GPU."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from support.scripted_device import ScriptedDevice


@pytest.fixture
def scripted(
    settings: Settings, compile_problem: Problem, tmp_path: Path
) -> Generator[ScriptedDevice]:
    """A device with nothing started; its workers end with the test."""
    made = ScriptedDevice(settings, compile_problem, tmp_path / "locks")
    yield made
    made.device.close()
