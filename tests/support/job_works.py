"""Work for job tests: quick, endless on the simulator, endless in the compiler."""

from collections.abc import Iterable
from pathlib import Path

from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.process_tree import ProcessKey, session_tree
from kopt.server.jobs.records import Progress
from kopt.server.work.requests import CheckWork, CompileWork
from kopt.tools.selftest.sample import SAMPLES

ROOT = Path(__file__).parents[2]
KERNEL = "silu_and_mul_b8xh14336"
REFERENCE = (ROOT / "kernels/problems/silu_and_mul/reference.cu").read_text("utf-8")
_ENDLESS = (SAMPLES / "evil_infinite_loop.cu").read_text("utf-8")
_BOMB = """
template <int N, int M> struct Bomb { static constexpr int value =
    Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value; };
template <int M> struct Bomb<0, M> { static constexpr int value = M; };
__device__ int sink() { return Bomb<26, 0>::value; }
"""
ON_SIM = "normal inputs"
"""What the progress of a check says when the kernel begins to run."""
IN_COMPILER = "compiling"

QUICK = CompileWork(kernel=KERNEL, source=REFERENCE)
SPINNING = CheckWork(kernel=KERNEL, source=_ENDLESS, device="sim")
"""Two minutes on the simulator."""
BOMB = CompileWork(kernel=KERNEL, source=REFERENCE + _BOMB)
"""A minute in nvcc."""


def job_settings(home: Path, shared_home: Path) -> Settings:
    """Return settings with jobs of their own, and the caches of all tests."""
    home.mkdir()
    (shared_home / "cache").mkdir(exist_ok=True)
    (home / "cache").symlink_to(shared_home / "cache")
    return Settings(home=home, jobs=2)


async def wait_until_told(host: JobHost, job_id: str, words: str, limit_s: float = 60.0) -> None:
    """Return as soon as the progress of a job says `words`."""

    async def watch(progress: Progress) -> None:
        if words in progress.message:
            raise _Told

    try:
        view = await host.wait(job_id, limit_s, watch)
    except _Told:
        return
    raise AssertionError(f"it never said {words!r}: {view.state}, {view.error}")


def trees(pids: Iterable[int]) -> frozenset[ProcessKey]:
    """Return everything that runs below `pids`, them included."""
    return frozenset[ProcessKey]().union(*map(session_tree, pids))


class _Told(Exception):
    """The awaited words came."""
