"""A runner process as its server sees it: started, given one job at a time, killed whole."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from kopt.config.settings import Settings, without_secrets

from .process_tree import ProcessKey, living, process_key, session_tree
from .records import EVENT, EndedEvent, OverEvent, Progress, RunnerStart

_GUARD = Path(__file__).with_name("guard.py")
_LINE_BYTES = 1 << 20
_TAIL_BYTES = 8192
_GRACE_S = 0.4
"""Longest time that sandboxes get to end by themselves once their runner is gone."""
_GONE_S = 5.0
"""Longest wait for killed processes; a driver that frees a context takes a second."""
_POLL_S = 0.01


@dataclass(frozen=True)
class RunnerDied:
    """The runner ended under the job, or was killed."""

    detail: str
    """The way it ended, and its last words on stderr."""


class RunnerProcess:
    """A runner and its guard; for one event loop, whose thread starts it."""

    def __init__(self, process: Process) -> None:
        """Take over a process that `start` made."""
        self._process = process
        self._tail = b""
        self._code: int | None = None
        self._guard = process_key(process.pid)
        self._guard_end: int | None = None
        self._members: frozenset[ProcessKey] = frozenset()
        self._is_gone = False
        self._drain = asyncio.create_task(self._read_stderr())
        self._watch_guard()

    @classmethod
    async def start(cls, settings: Settings) -> Self:
        """Start a runner; its imports go on while it is given its first job.

        Raises:
            OSError: The machine cannot start another process.
        """
        runner = [sys.executable, "-P", "-m", "kopt.server.jobs.runner"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *runner),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LINE_BYTES,
            env=without_secrets(),
            start_new_session=True,
        )
        made = cls(process)
        made._send(RunnerStart(settings=settings).model_dump_json())
        return made

    @property
    def pid(self) -> int:
        """The guard's, and the id of the session and group of both."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether neither runner nor guard has been seen to end."""
        has_guard = self._guard_end is not None and self._process.returncode is None
        return has_guard and self._code is None

    async def run(
        self, job_id: str, on_progress: Callable[[Progress], None]
    ) -> OverEvent | RunnerDied:
        """Have one job done; whatever happens to the process meanwhile is an answer too."""
        self._send(job_id)
        stdout = self._process.stdout
        assert stdout is not None  # PIPE
        while line := await stdout.readline():
            try:
                event = EVENT.validate_json(line)
            except ValidationError:  # the runner died within a line
                continue
            if isinstance(event, OverEvent):
                return event
            if isinstance(event, EndedEvent):
                self._code = event.code
                break
            on_progress(event.progress)
        await self.kill()
        return RunnerDied(self._describe())

    def kill_now(self) -> None:
        """Kill runner and guard, without waiting; sandboxes end as soon as their runner is gone."""
        if self._is_ours():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Kill the runner with everything below it, and return when all of it is gone."""
        self._note_members()
        self.kill_now()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (left := living(self._members)) and loop.time() < began + _GONE_S:
            if loop.time() > began + _GRACE_S:
                for process in left:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(process.pid, signal.SIGKILL)
            await asyncio.sleep(_POLL_S)
        await self._process.wait()
        self._is_gone = True
        self._leave_guard()
        await asyncio.wait([self._drain], timeout=_GRACE_S)

    def _is_ours(self) -> bool:
        """Whether the group's id still means this runner's.

        It does as long as a member lives, also without the guard. Without any, a new process may
        have got it.
        """
        return not self._is_gone and process_key(self.pid) in (None, self._guard)

    def _note_members(self) -> None:
        if self._is_ours():
            self._members |= session_tree(self.pid)

    def _watch_guard(self) -> None:
        """See to it that a runner ends with its guard: nothing else would end it with its server.

        Not `Process.wait`: before Python 3.12 that waits for the pipes too, which a runner without
        its guard holds open.
        """
        try:
            self._guard_end = os.pidfd_open(self.pid)
        except ProcessLookupError:  # it has ended already
            self.kill_now()
        else:
            asyncio.get_running_loop().add_reader(self._guard_end, self._on_guard_end)

    def _on_guard_end(self) -> None:
        self._leave_guard()
        self._note_members()
        self.kill_now()

    def _leave_guard(self) -> None:
        if self._guard_end is not None:
            asyncio.get_running_loop().remove_reader(self._guard_end)
            os.close(self._guard_end)
            self._guard_end = None

    def _send(self, line: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # PIPE
        stdin.write(line.encode() + b"\n")  # a runner that is gone shows on its stdout

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None  # PIPE
        while chunk := await stderr.read(_TAIL_BYTES):
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def _describe(self) -> str:
        code = self._code
        if code is None:
            how = "was killed"
        else:
            how = f"ended with signal {-code}" if code < 0 else f"ended with status {code}"
        said = self._tail.decode(errors="replace").strip()
        return f"the runner {how}" + (f"; it said last:\n{said}" if said else "")
