"""A server process of its own, for tests that kill it: it submits one job, or resumes what is left.

Usage: python job_server.py HOME [WORK as JSON]; it prints the job's id, then its progress.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.records import Progress
from kopt.server.work.requests import Work

WORK: TypeAdapter[Work] = TypeAdapter(Work)


class JobServer:
    """The process, seen from a test."""

    def __init__(self, home: Path, work: Work) -> None:
        """Start it with one job."""
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__, home, WORK.dump_json(work)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self.job_id = self._read()

    def read_until(self, words: str) -> None:
        """Return when the progress says `words`."""
        while words not in (line := self._read()):
            assert line, f"it ended before it said {words!r}"

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        """Return itself, already started."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no process."""
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()


async def _serve(home: Path, work: Work) -> None:
    async def watch(progress: Progress) -> None:
        print(progress.message, flush=True)

    host = JobHost(Settings(home=home, jobs=2))
    job_id = await host.submit(work, "test", "token:1")
    print(job_id, flush=True)
    view = await host.wait(job_id, 600.0, watch)
    print(view.state, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), WORK.validate_json(sys.argv[2])))
