"""An evaluator without a caller: second workers start after a pause, then it ends."""

import pytest

from kopt.server.resident.quiet import PAUSE_S, Quiet


def test_second_workers_start_after_a_pause_and_the_end_comes_at_the_idle_time() -> None:
    quiet = Quiet(600.0)
    assert quiet.wait_s == 600.0  # nobody has come yet
    quiet.is_broken()
    assert quiet.wait_s == PAUSE_S
    assert quiet.is_over() == "rest"
    assert quiet.wait_s == 600.0 - PAUSE_S
    assert quiet.is_over() == "end"


def test_a_caller_within_the_pause_puts_them_off() -> None:
    quiet = Quiet(600.0)
    for _ in range(3):
        quiet.is_broken()
        assert quiet.wait_s == PAUSE_S
    assert quiet.is_over() == "rest"
    quiet.is_broken()
    assert quiet.wait_s == PAUSE_S
    assert quiet.is_over() == "rest"


@pytest.mark.parametrize("idle_s", [0.0, 0.1, PAUSE_S])
def test_one_that_ends_before_a_pause_is_over_starts_none(idle_s: float) -> None:
    quiet = Quiet(idle_s)
    quiet.is_broken()
    assert quiet.wait_s == idle_s
    assert quiet.is_over() == "end"


def test_one_that_stays_until_it_is_stopped_waits_for_ever_once_they_are_there() -> None:
    quiet = Quiet(None)
    assert quiet.wait_s is None
    quiet.is_broken()
    assert quiet.wait_s == PAUSE_S
    assert quiet.is_over() == "rest"
    assert quiet.wait_s is None
