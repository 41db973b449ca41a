"""A measurement whose session is lost: begun again, a bounded number of times."""

import pytest

from kopt.config.errors import InfraError
from kopt.tools.devices.lost_timing import MOST_LOSSES, TimingLost, begun_again


def _losing(times: int, tried: list[int]) -> int:
    """Return how often it was tried once it is lost no more."""
    tried.append(times)
    if len(tried) <= times:
        raise TimingLost("gone")
    return len(tried)


def test_a_lost_session_begins_again() -> None:
    assert begun_again(_losing)(2, []) == 3


def test_what_is_lost_each_time_is_told() -> None:
    tried: list[int] = []
    with pytest.raises(TimingLost, match="gone"):
        begun_again(_losing)(99, tried)
    assert len(tried) == MOST_LOSSES


def test_another_failure_is_not_tried_again() -> None:
    tried: list[int] = []

    @begun_again
    def fail() -> None:
        tried.append(1)
        raise InfraError("the device failed")

    with pytest.raises(InfraError, match="the device failed"):
        fail()
    assert len(tried) == 1
