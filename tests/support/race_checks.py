"""A device in the place of the simulator that full checks on a GPU ask."""

import pytest

from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.tools.check import race_check

from .synthetic_check import NumpyDevice


def replaced_simulator(monkeypatch: pytest.MonkeyPatch) -> NumpyDevice:
    """Return the device that takes the simulator's place; right outputs unless a test says so."""
    fake = NumpyDevice(name="sim")

    def opened(settings: Settings, stop: PollableEvent) -> NumpyDevice:
        del settings, stop
        return fake

    monkeypatch.setattr(race_check, "SimDevice", opened)
    return fake
