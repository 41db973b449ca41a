"""Work that other threads leave for the main thread, and the end of all waiting."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kopt.search.models.errors import BudgetSpent, Stopped
from kopt.search.rounds.main_thread import MainThread, WorkerThreads

LIMIT_S = 30.0


def _attend_until_idle(main_thread: MainThread, workers: WorkerThreads) -> None:
    while workers.is_working:
        main_thread.attend(LIMIT_S)


def _workers(main_thread: MainThread, *works: Callable[[], None]) -> WorkerThreads:
    workers = WorkerThreads(main_thread)
    for place, work in enumerate(works):
        workers.start(f"worker-{place}", work)
    return workers


def test_work_of_another_thread_is_done_by_the_owner() -> None:
    main_thread = MainThread()
    found: list[int] = []
    workers = _workers(main_thread, lambda: found.append(main_thread.do(threading.get_ident)))
    _attend_until_idle(main_thread, workers)
    assert found == [threading.get_ident()]


def test_owner_does_its_own_work_at_once() -> None:
    assert MainThread().do(lambda: 7) == 7


def test_error_reaches_whoever_asked_for_the_work() -> None:
    def fail() -> None:
        raise ValueError("mine")

    main_thread = MainThread()
    workers = _workers(main_thread, lambda: main_thread.do(fail))
    _attend_until_idle(main_thread, workers)
    with pytest.raises(ValueError, match="mine"):
        workers.check()


def test_closing_ends_all_waiting_and_all_later_work() -> None:
    main_thread, did = MainThread(), threading.Event()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(main_thread.do, did.set)
        main_thread.close()
        assert isinstance(waiting.exception(LIMIT_S), Stopped)
        assert isinstance(pool.submit(main_thread.do, did.set).exception(LIMIT_S), Stopped)
    assert not did.is_set()
    assert main_thread.halt.is_stopped


def test_interrupt_of_the_owner_stops_whoever_asked_for_the_work() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    main_thread = MainThread()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(main_thread.do, interrupt)
        with pytest.raises(KeyboardInterrupt):
            main_thread.attend(LIMIT_S)
        assert isinstance(waiting.exception(LIMIT_S), Stopped)


def test_spent_budget_of_a_worker_is_told_and_not_raised() -> None:
    def spend() -> None:
        raise BudgetSpent("nothing is left")

    main_thread = MainThread()
    workers = _workers(main_thread, spend, lambda: None)
    _attend_until_idle(main_thread, workers)
    workers.check()
    assert str(workers.spent) == "nothing is left"


def test_failure_of_a_worker_waits_for_the_others() -> None:
    def fail() -> None:
        raise ValueError("mine")

    main_thread, go_on = MainThread(), threading.Event()
    workers = _workers(
        main_thread, fail, lambda: main_thread.halt.check() if go_on.wait(LIMIT_S) else None
    )
    main_thread.attend(LIMIT_S)
    workers.check()  # one still works
    go_on.set()
    _attend_until_idle(main_thread, workers)
    with pytest.raises(ValueError, match="mine"):
        workers.check()


OTHERS_SIGNAL = """\
import signal, sys, threading
from kopt.search.rounds.main_thread import MainThread

def interrupt(*_):
    raise KeyboardInterrupt

def receive():
    owner = threading.main_thread().ident
    while sys._current_frames()[owner].f_code.co_name != "attend":
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, interrupt)
threading.Thread(target=receive, daemon=True).start()
try:
    MainThread().attend()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_that_another_thread_received_ends_the_owners_wait() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHERS_SIGNAL], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
