"""Jobs that wait: callers take turns, and each may have so much waiting and no more."""

import asyncio
import resource
import subprocess
import sys

import anyio
import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.server.jobs import held_job, job_host
from kopt.server.jobs.held_job import (
    MAX_BYTES_OF_CALLER,
    MAX_JOBS,
    MAX_JOBS_OF_CALLER,
    FairQueue,
    Waiting,
    refuse_if_full,
    waiting_work,
)
from kopt.server.jobs.job_host import ADOPTED_WAITING, JobHost
from kopt.server.jobs.job_store import JobStore
from kopt.server.work.requests import StepWork, SubmittedCandidate
from support.job_works import QUICK, SPINNING

pytestmark = pytest.mark.anyio

LEFT = 40
_RAISED = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
from kopt.server.jobs.held_job import raise_open_files
raise_open_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_one_caller_fills_its_own_share_and_no_more() -> None:
    mine = [Waiting("me", 1)] * MAX_JOBS_OF_CALLER
    refuse_if_full(mine[1:], Waiting("me", 1))
    refuse_if_full(mine, Waiting("you", 1))
    with pytest.raises(ToolError, match=r"64 jobs of yours .*job_wait.*job_cancel"):
        refuse_if_full(mine, Waiting("me", 1))


def test_all_callers_together_fill_the_server() -> None:
    all_of_them = [Waiting(f"caller {number % 8}", 1) for number in range(MAX_JOBS)]
    refuse_if_full(all_of_them[1:], Waiting("me", 1))
    with pytest.raises(ToolError, match=r"this server is full: 256 jobs .*call again"):
        refuse_if_full(all_of_them, Waiting("me", 1))


def test_large_sources_are_refused_before_many_are() -> None:
    half = Waiting("me", MAX_BYTES_OF_CALLER // 2)
    refuse_if_full([half], half)
    with pytest.raises(ToolError, match="sources of your waiting jobs"):
        refuse_if_full([half, half], Waiting("me", 1))
    large = [Waiting(f"caller {number}", MAX_BYTES_OF_CALLER) for number in range(4)]
    with pytest.raises(ToolError, match="this server is full"):
        refuse_if_full(large, Waiting("me", 1))


def test_all_candidates_of_a_step_count() -> None:
    candidate = SubmittedCandidate(source="\u00e9" * 10)
    assert waiting_work("me", StepWork(candidates=(candidate, candidate))) == Waiting("me", 40)


async def test_jobs_that_arrive_at_once_are_all_counted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_job, "MAX_JOBS_OF_CALLER", 3)
    host = JobHost(settings)
    answers = await asyncio.gather(
        *(host.submit(SPINNING, "me") for _ in range(8)), return_exceptions=True
    )
    refused = [answer for answer in answers if isinstance(answer, ToolError)]
    await host.close()
    assert len(refused) == 5
    assert len(list(settings.jobs_folder.iterdir())) == 3


async def test_what_was_left_is_taken_up_a_few_at_a_time(settings: Settings) -> None:
    store = JobStore(settings.jobs_folder)
    for _ in range(LEFT):
        store.create(SPINNING, "me").release()
    host = JobHost(settings)
    await host.start()
    last = store.orphans()[-1]
    await host.view(last)  # a call for a job
    with anyio.fail_after(10.0):
        while len(store.orphans()) > LEFT - ADOPTED_WAITING:
            await anyio.sleep(0.01)
    assert len(store.orphans()) >= LEFT - ADOPTED_WAITING - settings.jobs
    assert last in store.orphans()
    await host.close()


async def test_a_server_that_is_only_greeted_takes_up_nothing(settings: Settings) -> None:
    claim = JobStore(settings.jobs_folder).create(QUICK, "me")
    claim.release()
    store = JobStore(settings.jobs_folder)
    for _ in range(6):
        host = JobHost(settings)
        await host.start()
        with anyio.move_on_after(0.3):
            while store.orphans():
                await anyio.sleep(0.01)
        assert (store.orphans(), host.runner_pids) == ([claim.request.id], [])
        await host.close()
    assert claim.files.read_attempts() == 0


async def test_what_was_left_is_taken_up_without_a_call_too(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_host, "ADOPT_AFTER_S", 0.01)
    store = JobStore(settings.jobs_folder)
    store.create(SPINNING, "me").release()
    host = JobHost(settings)
    await host.start()
    with anyio.fail_after(10.0):
        while store.orphans():
            await anyio.sleep(0.01)
    await host.close()


def test_a_server_may_have_as_many_files_open_as_the_system_lets_it() -> None:
    told = subprocess.run(
        [sys.executable, "-P", "-c", _RAISED], capture_output=True, text=True, check=True
    )
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 8192
    assert int(told.stdout) == (wanted if hard == resource.RLIM_INFINITY else min(hard, wanted))


def queue_of(*pairs: tuple[str, int]) -> FairQueue[int]:
    queue: FairQueue[int] = FairQueue()
    for caller, item in pairs:
        queue.put(caller, item)
    return queue


def drain(queue: FairQueue[int]) -> list[int]:
    taken: list[int] = []
    while (item := queue.take()) is not None:
        taken.append(item)
    return taken


def test_what_one_caller_asks_for_stays_in_order() -> None:
    assert drain(queue_of(("a", 1), ("a", 2), ("a", 3))) == [1, 2, 3]


def test_a_caller_with_one_job_does_not_wait_for_all_of_another() -> None:
    assert drain(queue_of(("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5))) == [1, 4, 5, 2, 3]


def test_a_caller_that_comes_back_waits_for_its_turn() -> None:
    queue = queue_of(("a", 1), ("a", 2), ("b", 3))
    assert queue.take() == 1
    queue.put("a", 4)
    queue.put("c", 5)
    assert drain(queue) == [3, 2, 5, 4]


def test_the_number_before_an_item_is_the_number_taken_before_it() -> None:
    pairs = [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 5), ("c", 6)]
    queue = queue_of(*pairs)
    before = {item: queue.before(caller, item) for caller, item in pairs}
    assert queue.before("a", 6) is None
    assert before == {item: place for place, item in enumerate(drain(queue))}


def test_what_is_removed_is_not_taken() -> None:
    queue = queue_of(("a", 1), ("a", 2), ("b", 3))
    assert queue.remove("a", 1)
    assert queue.remove("b", 3)
    assert not queue.remove("b", 3)
    assert (len(queue), drain(queue)) == (1, [2])
