"""Calls that share a prompt prefix: one writes it to the cache, the others wait to read it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from kopt.search.models.errors import Halt, Stopped
from kopt.search.models.prompt_cache import CacheWarmup


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Others:
    """Calls of other threads, all with one prefix."""

    gate: CacheWarmup
    pool: ThreadPoolExecutor
    inside: threading.Semaphore

    def start(self, number: int) -> None:
        for _ in range(number):
            self.pool.submit(self._call)

    def _call(self) -> None:
        with self.gate.turn("prefix") as cached:
            self.inside.release()
            cached()

    def arrive(self, number: int, within_s: float = 5.0) -> bool:
        return all(self.inside.acquire(timeout=within_s) for _ in range(number))


def test_others_wait_until_the_service_begins_to_answer_the_first() -> None:
    gate = CacheWarmup(Halt())
    with ThreadPoolExecutor(3) as pool:
        others = Others(gate, pool, threading.Semaphore(0))
        with gate.turn("prefix") as cached:
            others.start(3)
            assert not others.arrive(1, within_s=0.15)
            cached()
            assert others.arrive(3)


def test_first_that_fails_leaves_its_turn_to_another() -> None:
    gate = CacheWarmup(Halt())
    with ThreadPoolExecutor(2) as pool:
        others = Others(gate, pool, threading.Semaphore(0))
        with pytest.raises(ZeroDivisionError), gate.turn("prefix"):
            others.start(2)
            raise ZeroDivisionError
        assert others.arrive(2)


def test_another_prefix_does_not_wait() -> None:
    gate = CacheWarmup(Halt())
    with gate.turn("prefix"), gate.turn("another"), gate.turn(None), gate.turn(None):
        pass


def test_prefix_that_was_long_unused_is_written_by_one_alone_again() -> None:
    clock = Clock()
    gate = CacheWarmup(Halt(), clock)
    with gate.turn("prefix") as cached:
        cached()
        with gate.turn("prefix") as read:
            read()
        clock.now_s = 1000.0
        with ThreadPoolExecutor(1) as pool:
            others = Others(gate, pool, threading.Semaphore(0))
            with gate.turn("prefix") as written:
                others.start(1)
                assert not others.arrive(1, within_s=0.15)
                written()
                assert others.arrive(1)


def test_first_that_ends_late_does_not_end_the_turn_of_a_later_one() -> None:
    clock = Clock()
    gate = CacheWarmup(Halt(), clock)
    with ThreadPoolExecutor(1) as pool:
        others = Others(gate, pool, threading.Semaphore(0))
        early = gate.turn("prefix")
        early.__enter__()()
        clock.now_s = 1000.0
        with gate.turn("prefix") as written:
            early.__exit__(None, None, None)
            others.start(1)
            assert not others.arrive(1, within_s=0.15)
            written()
        assert others.arrive(1)


def test_stopped_run_ends_the_waiting() -> None:
    halt = Halt()
    gate = CacheWarmup(halt)
    with gate.turn("prefix"), ThreadPoolExecutor(1) as pool:

        def wait_for_a_turn() -> None:
            with gate.turn("prefix"):
                raise AssertionError("two write one prefix")

        waiting = pool.submit(wait_for_a_turn)
        halt.stop()
        with pytest.raises(Stopped):
            waiting.result(timeout=5.0)
