"""The rate limit of model calls: concurrency, token buckets and the threads that wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from kopt.search.models.errors import CallFailed, Halt, Stopped
from kopt.search.models.model import Usage
from kopt.search.models.rate_limit import (
    COOL_DOWN_S,
    ConcurrencyLimit,
    RateLimit,
    RateSettings,
    TokenBucket,
)


def test_refusals_of_one_episode_shrink_the_limit_once() -> None:
    limit = ConcurrencyLimit(20)
    for at_s in (0.0, 1.0, COOL_DOWN_S - 0.1):
        limit.refused(at_s)
    assert limit.allowed == 16
    limit.refused(COOL_DOWN_S)
    assert limit.allowed == 12


def test_limit_never_falls_below_one_call() -> None:
    limit = ConcurrencyLimit(2)
    for episode in range(50):
        limit.refused(episode * COOL_DOWN_S)
    assert limit.allowed == 1


def test_limit_grows_by_a_twentieth_per_clean_round_up_to_where_it_began() -> None:
    limit = ConcurrencyLimit(20)
    limit.refused(0.0)
    for _ in range(15):
        limit.answered()
    assert limit.allowed == 16
    for _ in range(17 * 2):
        limit.answered()
    assert limit.allowed == 17
    for _ in range(1000):
        limit.answered()
    assert limit.allowed == 20


def test_refusal_ends_a_clean_round() -> None:
    limit = ConcurrencyLimit(10)
    limit.refused(0.0)
    for _ in range(100):
        for _ in range(7):
            limit.answered()
        limit.refused(1.0)  # within the cool-down: shrinks nothing, but the round was not clean
    assert limit.allowed == 8


def test_bucket_gives_a_minutes_worth_at_once_and_then_as_it_flows_in() -> None:
    bucket = TokenBucket(60.0, now_s=0.0)
    assert bucket.wait_s(60.0, 0.0) == 0.0
    bucket.take(60.0, 0.0)
    assert bucket.wait_s(10.0, 0.0) == 10.0
    assert bucket.wait_s(10.0, 10.0) == 0.0


def test_more_than_a_minutes_worth_waits_for_a_full_bucket_and_leaves_a_debt() -> None:
    bucket = TokenBucket(60.0, now_s=0.0)
    assert bucket.wait_s(100.0, 0.0) == 0.0
    bucket.take(100.0, 0.0)
    assert bucket.wait_s(1.0, 0.0) == 41.0


def test_what_is_given_back_does_not_overflow() -> None:
    bucket = TokenBucket(60.0, now_s=0.0)
    bucket.take(-1000.0, 0.0)
    bucket.take(60.0, 0.0)
    assert bucket.wait_s(1.0, 0.0) == 1.0


@dataclass
class Clock:
    """Seconds that pass whenever they are read."""

    now_s: float = 0.0
    step_s: float = 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def one_call(rate: RateLimit, prompt_tokens: int = 0) -> None:
    with rate.permit(prompt_tokens) as permit:
        permit.usage = Usage(input_tokens=prompt_tokens)


def refuse(rate: RateLimit, retry_after_s: float | None = None) -> None:
    refusal = CallFailed(kind="time", message="no", status=429, retry_after_s=retry_after_s)
    with pytest.raises(CallFailed), rate.permit(0):
        raise refusal


def test_no_more_calls_are_under_way_than_allowed() -> None:
    rate = RateLimit(RateSettings(concurrency=3), Halt())
    lock, inside, most = threading.Lock(), 0, 0
    three_met = threading.Barrier(3, timeout=5.0)

    def call(number: int) -> None:
        nonlocal inside, most
        with rate.permit(0):
            with lock:
                inside += 1
                most = max(most, inside)
            three_met.wait()
            with lock:
                inside -= 1

    with ThreadPoolExecutor(9) as pool:
        list(pool.map(call, range(9)))
    assert most == 3


def test_refused_call_makes_room_for_fewer() -> None:
    rate = RateLimit(RateSettings(concurrency=10), Halt())
    refuse(rate)
    assert rate.allowed == 8


def test_nobody_waits_for_a_service_that_asks_for_a_week() -> None:
    rate = RateLimit(RateSettings(concurrency=10), Halt(), Clock())
    refuse(rate, retry_after_s=604_800.0)
    one_call(rate)  # its own refusal tells it to give up


def test_other_failures_leave_the_limit_alone() -> None:
    rate = RateLimit(RateSettings(concurrency=10), Halt())
    with pytest.raises(CallFailed), rate.permit(0):
        raise CallFailed(kind="time", message="no", status=503)
    assert rate.allowed == 10


def test_nobody_calls_before_the_time_that_the_service_named() -> None:
    clock = Clock()
    rate = RateLimit(RateSettings(concurrency=10), Halt(), clock)
    refuse(rate, retry_after_s=30.0)
    clock.step_s = 10.0  # each look at the clock; waiting itself takes no time that it shows
    one_call(rate)
    assert clock.now_s >= 30.0


def test_requests_of_a_minute_are_spread() -> None:
    clock = Clock()
    rate = RateLimit(RateSettings(concurrency=10, requests_per_minute=2), Halt(), clock)
    one_call(rate)
    one_call(rate)
    assert clock.now_s == 0.0
    clock.step_s = 10.0
    one_call(rate)
    assert clock.now_s >= 30.0


def test_tokens_of_a_minute_count_as_they_really_were() -> None:
    clock = Clock()
    settings = RateSettings(concurrency=10, input_tokens_per_minute=600)
    rate = RateLimit(settings, Halt(), clock)
    with rate.permit(600) as permit:
        permit.usage = Usage(input_tokens=300, cache_write_5m_tokens=200, cache_read_tokens=9000)
    one_call(rate, 100)
    assert clock.now_s == 0.0
    clock.step_s = 5.0
    one_call(rate, 100)
    assert clock.now_s >= 10.0


def test_place_is_free_again_after_any_failure() -> None:
    rate = RateLimit(RateSettings(concurrency=1), Halt())
    with pytest.raises(ZeroDivisionError), rate.permit(0):
        raise ZeroDivisionError
    one_call(rate)


def test_stopped_run_ends_the_waiting() -> None:
    halt = Halt()
    rate = RateLimit(RateSettings(concurrency=1), halt)
    with rate.permit(0), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one_call, rate)
        halt.stop()
        with pytest.raises(Stopped):
            waiting.result(timeout=5.0)
