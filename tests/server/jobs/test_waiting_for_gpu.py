"""Jobs that wait for a GPU: one runner for each, and none stays in the line after a cancel."""

import os
from pathlib import Path

import anyio
import pytest

from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.process_tree import living
from kopt.tools.gpu.ticket_lock import TicketLock
from support.bench_results import H100
from support.job_works import REFERENCE, ROOT, SPINNING, trees, wait_until_told

pytestmark = pytest.mark.anyio

BOUND_S = 60.0
FREE_S = 1.0
_GPU_IN_NAME_ONLY = """
import os
from functools import partial
from pathlib import Path
from kopt.config.gpu_specs import load_gpus
from kopt.tools.gpu import open_gpu
from kopt.tools.gpu.discovery import FoundGpu
from support.bench_results import H100
open_gpu.find_gpu = lambda name: FoundGpu(H100, load_gpus()["H100"])
open_gpu.require_worker_modules = lambda: None
open_gpu.ENGINE = "support.scripted_gpu:ScriptedGpu"
open_gpu.TicketLock = partial(open_gpu.TicketLock, folder=Path(os.environ["LOCKS"]))
"""
ON_GPU = SPINNING.model_copy(update={"source": REFERENCE, "device": "cuda:0"})


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TicketLock:
    """Let runners find a GPU that nobody can use before this lock is free."""
    (tmp_path / "sitecustomize.py").write_text(_GPU_IN_NAME_ONLY, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT / "tests")]))
    monkeypatch.setenv("LOCKS", str(tmp_path / "locks"))
    return TicketLock(H100.uuid, tmp_path / "locks")


async def test_a_job_that_waits_for_the_gpu_says_so_and_is_cancelled_at_once(
    host: JobHost, lock: TicketLock
) -> None:
    with lock.hold():
        job_id = await host.submit(ON_GPU, "me")
        await wait_until_told(
            host, job_id, f"waiting for cuda:0, 1 before you; held by process {os.getpid()}"
        )
        members = trees(host.runner_pids)
        with anyio.fail_after(FREE_S):
            view = await host.cancel(job_id)
        assert view.state == "cancelled"
        assert living(members) == frozenset()
    assert lock.holder() is None


async def test_a_gpu_has_one_runner_and_the_simulator_others(
    host: JobHost, lock: TicketLock
) -> None:
    with lock.hold():
        first = await host.submit(ON_GPU, "me")
        second = await host.submit(ON_GPU, "you")
        await wait_until_told(host, first, "waiting for cuda:0")
        on_sim = ON_GPU.model_copy(update={"device": "sim"})
        view = await host.wait(await host.submit(on_sim, "me"), 2 * BOUND_S)
        assert view.result is not None and view.result["status"] == "passed"
        assert (await host.view(second)).state == "queued"
        assert len(host.runner_pids) == 2
