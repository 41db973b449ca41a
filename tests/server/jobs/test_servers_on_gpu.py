"""`kopt serve` over stdio with a benchmark on a real GPU: ended while it measures, and two at once.

The measured seconds are printed: pytest -s, or -rP.
"""

import re
import signal
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.gpu_memory import pids_on_gpus
from support.job_works import REFERENCE, job_settings
from support.stdio_process import StdioProcess, wait_until_gone

pytestmark = pytest.mark.gpu

LARGE = "silu_and_mul_b1024xh14336"
"""Its measurement takes seconds, most of them for the outputs of its sets."""
MEASURING = "timing against"
ENDINGS = [
    pytest.param(None, 0, id="EOF"),
    pytest.param(signal.SIGINT, 130, id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
    pytest.param(signal.SIGKILL, -9, id="SIGKILL"),
]
GONE_S = 2.0


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
def test_a_server_that_ends_while_it_measures_frees_the_gpu_and_loses_no_job(
    ending: signal.Signals | None, code: int, tmp_path: Path, shared_home: Path
) -> None:
    home = job_settings(tmp_path / "home", shared_home).home
    with StdioProcess(home) as server:
        server.greet()
        finished = server.call("compile", kernel=LARGE, source=REFERENCE)
        job_id = _begin(server)
        server.wait_until_told(job_id, MEASURING)
        tree = server.tree()
        on_gpu = pids_on_gpus() & {process.pid for process in tree}
        assert on_gpu
        began = time.monotonic()
        assert server.end(ending) == code
        wait_until_gone(tree)
        gone_s = time.monotonic() - began
        while on_gpu & pids_on_gpus() and time.monotonic() - began < GONE_S:
            continue
        free_s = time.monotonic() - began
        print(f"\nall {len(tree)} processes gone after {gone_s:.2f} s, GPU free {free_s:.2f} s")
        assert max(gone_s, free_s) < GONE_S
    with StdioProcess(home) as another:
        another.greet()
        assert another.call("job_wait", job_id=finished["job_id"], wait_s=0) == finished
        resumed = another.call("job_wait", job_id=job_id, wait_s=0)
        assert resumed["status"] in ("queued", "running")
        assert "verdict" in another.wait_until_over(job_id)


@pytest.fixture
def two_servers(tmp_path: Path, shared_home: Path) -> Generator[list[StdioProcess]]:
    """Yield two servers that share nothing but the GPU and the compile caches."""
    with ExitStack() as stack:
        homes = [job_settings(tmp_path / name, shared_home).home for name in ("one", "two")]
        servers = [stack.enter_context(StdioProcess(home)) for home in homes]
        for server in servers:
            server.greet()
        yield servers


def test_two_servers_measure_in_turn_and_who_waits_is_told_for_whom(
    two_servers: list[StdioProcess],
) -> None:
    began = time.monotonic()
    jobs = [_begin(server) for server in two_servers]
    with ThreadPoolExecutor(len(jobs)) as threads:
        replies = list(threads.map(StdioProcess.wait_until_over, two_servers, jobs))
    print(f"\nboth done after {time.monotonic() - began:.1f} s")
    assert all("verdict" in reply for reply in replies), replies
    waited_for = [_holders(server) for server in two_servers]
    pids = [{process.pid for process in server.tree()} for server in two_servers]
    print(f"told to wait for {waited_for}")
    assert waited_for[0] & pids[1] or waited_for[1] & pids[0]


def _begin(server: StdioProcess) -> str:
    begun = server.call("benchmark", kernel=LARGE, source=REFERENCE, device="cuda:0", wait_s=0)
    job_id: str = begun["job_id"]
    return job_id


def _holders(server: StdioProcess) -> set[int]:
    """Return the processes that the client of a server was told to wait for."""
    told = [
        str(one["params"].get("message"))
        for one in server.notifications
        if one.get("method") == "notifications/progress"
    ]
    return {int(pid) for line in told for pid in re.findall(r"held by process (\d+)", line)}
