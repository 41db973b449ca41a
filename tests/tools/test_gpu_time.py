"""Who is charged for the time that a GPU was held."""

import threading
from concurrent.futures import wait

from kopt.config.thread_pool import thread_pool
from kopt.tools.devices.gpu_time import count_gpu_time, metered_gpu_time


def test_time_counts_for_whoever_is_inside_and_for_nobody_outside() -> None:
    count_gpu_time(8.0)
    with metered_gpu_time() as meter:
        count_gpu_time(1.0)
        count_gpu_time(0.5)
    count_gpu_time(4.0)
    assert meter.seconds == 1.5


def test_time_of_a_pool_s_threads_counts_for_whoever_opened_it() -> None:
    with metered_gpu_time() as meter, thread_pool(4, "work") as pool:
        work = [pool.submit(count_gpu_time, 0.25) for _ in range(8)]
        wait(work)
    assert meter.seconds == 2.0


def test_another_thread_s_work_is_its_own() -> None:
    seconds: list[float] = []

    def work() -> None:
        with metered_gpu_time() as own:
            count_gpu_time(3.0)
        seconds.append(own.seconds)

    with metered_gpu_time() as meter:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (meter.seconds, seconds) == (0.0, [3.0])
