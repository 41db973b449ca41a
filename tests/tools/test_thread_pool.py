"""What the end of a pool waits for."""

import threading
from concurrent.futures import Future

import pytest

from kopt.config.thread_pool import thread_pool


def test_running_work_is_waited_for_and_queued_work_dropped() -> None:
    started, ended = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        ended.set()

    with pytest.raises(ZeroDivisionError), thread_pool(1, "test") as pool:
        pool.submit(work)
        assert started.wait(5)
        raise ZeroDivisionError
    assert ended.is_set()


def test_an_interrupt_does_not_wait_for_running_work() -> None:
    started, released = threading.Event(), threading.Event()

    def work() -> bool:
        started.set()
        return released.wait(5)

    pending: list[Future[bool]] = []
    with pytest.raises(KeyboardInterrupt), thread_pool(1, "test") as pool:
        pending += [pool.submit(work), pool.submit(work)]
        assert started.wait(5)
        raise KeyboardInterrupt
    running, queued = pending
    assert not running.done()
    assert queued.cancelled()
    released.set()
    assert running.result(5)
