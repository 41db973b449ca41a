"""Threads that wait for a place among the calls under way."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from kopt.search.models.call_errors import CallFailed, Stopped
from kopt.search.models.halt import Halt
from kopt.search.models.model import Usage
from kopt.search.models.rate import RateLimit, RateSettings


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
