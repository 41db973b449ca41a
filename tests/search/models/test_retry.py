"""How long a call is waited with, and when it is given up."""

import random

import pytest

from kopt.search.models.errors import CallFailed, FailureKind
from kopt.search.models.retry import Retries, RetryPolicy


def failed(
    status: int | None = None, after_s: float | None = None, kind: FailureKind = "time"
) -> CallFailed:
    return CallFailed(kind=kind, message="no", status=status, retry_after_s=after_s)


def broken(kind: FailureKind = "time") -> CallFailed:
    return CallFailed(kind=kind, message="cut off", may_cost=True)


def course(busy_s: float = 1800.0) -> Retries:
    return Retries(RetryPolicy(busy_s=busy_s), jitter=random.Random(1))


@pytest.mark.parametrize("status", [429, 529])
def test_busy_service_is_waited_for_exactly_as_long_as_it_asks(status: int) -> None:
    assert course().wait_s(failed(status, after_s=17.0)) == 17.0


def test_busy_service_is_asked_again_until_the_time_for_it_is_over() -> None:
    waiting = course(busy_s=100.0)
    waits = [waiting.wait_s(failed(429, after_s=10.0)) for _ in range(11)]
    assert waits == [10.0] * 10 + [None]


def test_a_wait_longer_than_the_time_for_it_is_not_begun() -> None:
    assert course(busy_s=60.0).wait_s(failed(429, after_s=61.0)) is None


def test_service_that_says_at_once_for_ever_is_given_up() -> None:
    waiting = course(busy_s=100.0)
    waits = [waiting.wait_s(failed(429, after_s=0.0)) for _ in range(300)]
    assert waits[-1] is None and None not in waits[:90]


@pytest.mark.parametrize("status", [500, 503, None])
def test_sixth_failure_of_the_service_is_the_last(status: int | None) -> None:
    waiting = course()
    waits = [waiting.wait_s(failed(status)) for _ in range(6)]
    assert waits[5] is None and None not in waits[:5]


@pytest.mark.parametrize("status", [500, None])
def test_service_that_had_answered_is_waited_for_until_the_time_for_it_is_over(
    status: int | None,
) -> None:
    waiting = Retries(RetryPolicy(busy_s=600.0), has_answered=True, jitter=random.Random(1))
    waits = [wait for _ in range(200) if (wait := waiting.wait_s(failed(status))) is not None]
    assert 500.0 < sum(waits) <= 600.0
    assert waiting.wait_s(failed(status, after_s=60.0)) is None


def test_service_that_had_answered_is_not_asked_for_ever() -> None:
    waiting = Retries(RetryPolicy(step_s=0.0), has_answered=True)
    waits = [waiting.wait_s(failed(500)) for _ in range(100)]
    assert waits[-1] is None and None not in waits[:-1]


@pytest.mark.parametrize("kind", ["time", "us"])
def test_third_reply_that_breaks_off_is_the_last(kind: FailureKind) -> None:
    waiting = course()
    waits = [waiting.wait_s(broken(kind)) for _ in range(3)]
    assert waits[2] is None and None not in waits[:2]


@pytest.mark.parametrize("kind", ["us", "user"])
def test_what_no_time_mends_is_not_asked_again(kind: FailureKind) -> None:
    assert course().wait_s(failed(400, kind=kind)) is None


def test_waits_grow_to_a_minute_and_are_spread() -> None:
    waiting = course(busy_s=1e9)
    waits = [waiting.wait_s(failed(529)) or 0.0 for _ in range(300)]
    steps = [min(60.0, 2.0**n) for n in range(300)]
    assert all(0.0 <= wait <= step for wait, step in zip(waits, steps, strict=True))
    assert max(waits) > 45.0 and min(waits[10:]) < 15.0


def test_two_calls_that_fail_together_do_not_come_back_together() -> None:
    assert Retries(RetryPolicy()).wait_s(failed(529)) != Retries(RetryPolicy()).wait_s(failed(529))
