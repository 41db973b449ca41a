"""Work that other threads leave for the main thread, and the end of all waiting."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kopt.search.models.errors import BudgetSpent, Stopped
from kopt.search.rounds.crew import Crew
from kopt.search.rounds.main_thread import Mailbox

LIMIT_S = 30.0


def _attend_until_idle(mailbox: Mailbox, crew: Crew) -> None:
    while crew.is_working:
        mailbox.attend(LIMIT_S)


def _crew(mailbox: Mailbox, *works: Callable[[], None]) -> Crew:
    crew = Crew(mailbox)
    for place, work in enumerate(works):
        crew.start(f"worker-{place}", work)
    return crew


def test_work_of_another_thread_is_done_by_the_owner() -> None:
    mailbox = Mailbox()
    found: list[int] = []
    crew = _crew(mailbox, lambda: found.append(mailbox.do(threading.get_ident)))
    _attend_until_idle(mailbox, crew)
    assert found == [threading.get_ident()]


def test_owner_does_its_own_work_at_once() -> None:
    assert Mailbox().do(lambda: 7) == 7


def test_error_reaches_whoever_asked_for_the_work() -> None:
    def fail() -> None:
        raise ValueError("mine")

    mailbox = Mailbox()
    crew = _crew(mailbox, lambda: mailbox.do(fail))
    _attend_until_idle(mailbox, crew)
    with pytest.raises(ValueError, match="mine"):
        crew.check()


def test_closing_ends_all_waiting_and_all_later_work() -> None:
    mailbox, did = Mailbox(), threading.Event()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(mailbox.do, did.set)
        mailbox.close()
        assert isinstance(waiting.exception(LIMIT_S), Stopped)
        assert isinstance(pool.submit(mailbox.do, did.set).exception(LIMIT_S), Stopped)
    assert not did.is_set()
    assert mailbox.halt.is_stopped


def test_interrupt_of_the_owner_stops_whoever_asked_for_the_work() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    mailbox = Mailbox()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(mailbox.do, interrupt)
        with pytest.raises(KeyboardInterrupt):
            mailbox.attend(LIMIT_S)
        assert isinstance(waiting.exception(LIMIT_S), Stopped)


def test_spent_budget_of_a_worker_is_told_and_not_raised() -> None:
    def spend() -> None:
        raise BudgetSpent("nothing is left")

    mailbox = Mailbox()
    crew = _crew(mailbox, spend, lambda: None)
    _attend_until_idle(mailbox, crew)
    crew.check()
    assert str(crew.spent) == "nothing is left"


def test_failure_of_a_worker_waits_for_the_others() -> None:
    def fail() -> None:
        raise ValueError("mine")

    mailbox, go_on = Mailbox(), threading.Event()
    crew = _crew(mailbox, fail, lambda: mailbox.halt.check() if go_on.wait(LIMIT_S) else None)
    mailbox.attend(LIMIT_S)
    crew.check()  # one still works
    go_on.set()
    _attend_until_idle(mailbox, crew)
    with pytest.raises(ValueError, match="mine"):
        crew.check()


OTHERS_SIGNAL = """\
import signal, sys, threading
from kopt.search.rounds.main_thread import Mailbox

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
    Mailbox().attend()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_that_another_thread_received_ends_the_owners_wait() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHERS_SIGNAL], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
