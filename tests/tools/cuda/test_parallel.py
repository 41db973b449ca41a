"""Running jobs at once: order, errors, and nothing begun after a failure."""

import threading
from functools import partial

import pytest

from kopt.tools.cuda.compile_stage import run_parallel


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_come_in_the_order_of_the_jobs(threads: int) -> None:
    jobs = [partial(pow, 2, exponent) for exponent in range(20)]
    assert run_parallel(jobs, threads) == [2**exponent for exponent in range(20)]


def test_as_many_jobs_run_at_once_as_there_are_threads() -> None:
    barrier = threading.Barrier(3, timeout=10)
    assert sorted(run_parallel([barrier.wait] * 3, 3)) == [0, 1, 2]


def test_never_more_jobs_run_at_once_than_there_are_threads() -> None:
    seats = threading.Semaphore(2)

    def job() -> bool:
        free = seats.acquire(blocking=False)
        if free:
            threading.Event().wait(0.001)
            seats.release()
        return free

    assert all(run_parallel([job] * 12, 2))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_is_raised_as_it_is(threads: int) -> None:
    def fail() -> None:
        raise LookupError("this one")

    with pytest.raises(LookupError, match="this one"):
        run_parallel([fail, fail, fail], threads)


def test_no_jobs_have_no_results() -> None:
    assert run_parallel([], 4) == []
