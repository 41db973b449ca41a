"""Jobs on a real GPU: measured by a runner, cancelled while a kernel spins."""

import time

import pytest

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.status import Status
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.process_tree import living
from kopt.server.work.requests import BenchWork, CheckWork
from support.job_works import KERNEL, ON_SIM, REFERENCE, SPINNING, trees, wait_until_told

pytestmark = [pytest.mark.gpu, pytest.mark.anyio]

LONG_S = 300.0
FREE_S = 1.0
"""A device is free again so soon after a cancel."""


async def test_a_benchmark_is_measured(host: JobHost) -> None:
    work = BenchWork(kernel=KERNEL, source=REFERENCE, device="cuda:0")
    view = await host.wait(await host.submit(work, "me"), LONG_S)
    result = BenchResult.model_validate(view.result)
    assert (result.status, result.verdict is None) == (Status.PASSED, False)
    assert result.gpu is not None


async def test_a_cancelled_job_leaves_the_gpu_to_the_next_within_a_second(host: JobHost) -> None:
    honest = CheckWork(kernel=KERNEL, source=REFERENCE, device="cuda:0")
    assert (await host.wait(await host.submit(honest, "me"), LONG_S)).state == "done"
    endless = SPINNING.model_copy(update={"device": "cuda:0"})
    spinning = await host.submit(endless, "me")
    await wait_until_told(host, spinning, ON_SIM)
    running = trees(host.runner_pids)
    started = time.monotonic()
    assert (await host.cancel(spinning)).state == "cancelled"
    assert time.monotonic() - started < FREE_S
    assert not living(running)
    assert (await host.wait(await host.submit(honest, "me"), LONG_S)).state == "done"
