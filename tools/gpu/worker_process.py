"""One sandboxed worker process, from kopt's side: started, sent requests, killed at a deadline.

It does not know what a GPU is, and does not judge: a request ends with an answer or a `WorkerEnd`,
and the device decides what that means for a candidate. A worker is never started again: after its
end, make another.
"""

import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from kopt.config.errors import InfraError, KoptError, SetupError
from kopt.config.pollable_event import PollableEvent
from kopt.config.scratch_folder import scratch_folder
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import available_level, run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxLevel, SandboxPolicy

from .channel import (
    TOKEN_BYTES,
    ChannelClosed,
    ChannelGarbage,
    ChannelTimeout,
    open_parent_end,
)
from .messages import ANSWER, REQUEST, Answer, Failed, FaultAnswer, Hello, Request
from .worker_policy import WorkerSpec, worker_policy

START_S = 180.0
"""For the imports: torch from a cold disk takes most of it."""
_KILL_S = 15.0
"""Longest wait for a killed worker to be gone; a driver that frees a context takes a second."""
_REPORT_S = 3.0
"""How long a worker that hung up may take to die: a crash frees its context first."""
_FOLDER_BYTES = 1 << 30
"""What a worker's folder should have room for: the outputs of all sets of a timing."""


@dataclass(frozen=True)
class WorkerEnd:
    """The end of a worker instead of an answer."""

    reason: Literal["timeout", "died"]
    detail: str
    """One line for people: the time limit, or how it died and what it said last."""


class WorkerProcess:
    """A worker process; safe from several threads, which are served one at a time."""

    def __init__(self, spec: WorkerSpec, settings: Settings) -> None:
        """Prepare the folder; nothing runs before `start`.

        Raises:
            SetupError: No sandbox works here, or KOPT_HOME cannot be written.
        """
        self.level: SandboxLevel = available_level(settings)
        token = secrets.token_bytes(TOKEN_BYTES)
        with ExitStack() as stack:
            self.folder: Path = stack.enter_context(scratch_folder("worker", _FOLDER_BYTES))
            policy = worker_policy(spec, self.folder, settings)
            self._life = _Life(_command(spec, self.folder, token), policy, settings)
            self._channel = open_parent_end(self.folder, token, self._life.over)
            stack.callback(self._channel.close)
            self._asking = threading.Lock()  # of `_channel`
            self._clean_up = weakref.finalize(
                self, _dispose, self._life, self._asking, stack.pop_all()
            )

    def start(self, timeout_s: float = START_S) -> None:
        """Start the process and wait until its imports are done.

        Raises:
            SetupError: The sandbox or the engine cannot start here; the message says why.
            InfraError: It died or did not report in time.
        """
        with self._asking:
            if self._life.over.is_set:  # the channel may be closed already
                raise InfraError("the GPU worker was ended before it started")
            self._life.begin()
            answer = self._receive(time.monotonic() + timeout_s)
        if isinstance(answer, Hello):
            return
        self.end()
        if isinstance(answer, Failed):
            raise SetupError(f"the GPU worker cannot start: {answer.message}")
        if isinstance(self._life.failure, KoptError):
            raise self._life.failure
        detail = answer.detail if isinstance(answer, WorkerEnd) else f"it said {answer.kind}"
        raise InfraError(f"the GPU worker did not start: {detail}")

    def ask(self, request: Request, timeout_s: float) -> Answer | WorkerEnd:
        """Return the answer to `request`, or how the worker ended instead.

        A worker that does not answer in time is killed, with all that it started, before this
        returns. One that has ended gives the same end again.
        """
        with self._asking:
            if self._life.over.is_set:
                return WorkerEnd("died", self._life.describe())
            deadline = time.monotonic() + timeout_s
            try:
                self._channel.send(REQUEST.dump_json(request), deadline)
            except ChannelTimeout:
                return self._kill(f"the worker does not read; {timeout_s:g} s passed")
            except ChannelClosed:
                return self._died()
            except BaseException:  # an interrupt between request and answer: they no longer pair
                self._life.end()
                raise
            return self._receive(deadline)

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked."""
        return self._life.is_running

    def end(self) -> None:
        """Kill the worker and remove its folder; a question under way ends as `died`."""
        self._clean_up()

    def _receive(self, deadline: float) -> Answer | WorkerEnd:
        try:
            return ANSWER.validate_json(self._channel.receive(deadline))
        except ChannelTimeout:
            return self._kill("no answer within the time limit")
        except ChannelClosed:
            return self._died()
        except (ChannelGarbage, ValidationError) as error:
            self._life.end()
            text = str(error).splitlines()[0]
            return WorkerEnd("died", f"it was ended because it sent something else: {text}")
        except BaseException:
            self._life.end()
            raise

    def _kill(self, detail: str) -> WorkerEnd:
        self._life.end()
        return WorkerEnd("timeout", detail)

    def _died(self) -> WorkerEnd:
        """Wait for the launcher's report, since the FIFO closes a little before."""
        self._life.wait(_REPORT_S)
        self._life.end()
        return WorkerEnd("died", self._life.describe())


class _Life:
    """The thread that runs the sandbox, and what it found; holds no reference to the owner."""

    def __init__(
        self, command: Sequence[str | Path], policy: SandboxPolicy, settings: Settings
    ) -> None:
        self.over = PollableEvent()
        self.failure: KoptError | OSError | None = None
        self._run: SandboxedRun | None = None
        self._stop = PollableEvent()
        self._arguments = (command, policy, settings)
        self._thread = threading.Thread(target=self._supervise, name="gpu-worker", daemon=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive() and not self.over.is_set

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Kill everything and wait until it is gone, within `_KILL_S`."""
        self._stop.set()
        self.wait()

    def wait(self, limit_s: float = _KILL_S) -> None:
        if self._thread.ident is not None:
            self._thread.join(limit_s)

    def describe(self) -> str:
        """Return how it ended, in one line."""
        if self.failure is not None:
            return str(self.failure).splitlines()[0]
        if self._run is None:
            return "it is not running" if self.over.is_set else "it does not end"
        if self._run.stopped:
            return "it was ended"
        code = self._run.returncode
        how = f"signal {-code}" if code < 0 else f"status {code}"
        said = self._run.stderr_end.decode(errors="replace").strip().splitlines()
        return f"the worker ended with {how}" + (f": {said[-1][:300]}" if said else "")

    def _supervise(self) -> None:
        command, policy, settings = self._arguments
        try:
            self._run = run_sandboxed(command, policy, settings, self._stop)
        except (
            KoptError,
            OSError,
        ) as error:  # raised to those who wait: a thread has no caller
            self.failure = error
        finally:
            self.over.set()


def _command(spec: WorkerSpec, folder: Path, token: bytes) -> list[str | Path]:
    return [
        os.path.abspath(sys.executable),
        "-P",
        "-m",
        "kopt.tools.gpu.worker",
        spec.engine,
        folder,
        token.hex(),
        *spec.preload,
    ]


def _dispose(life: _Life, asking: threading.Lock, resources: ExitStack) -> None:
    life.over.set()
    life.end()
    with asking:  # a request under way has seen the end and lets go; then the channel is unused
        resources.close()


Expected = TypeVar("Expected")


def ask_for(
    kind: type[Expected], worker: WorkerProcess, request: Request, timeout_s: float
) -> Expected | FaultAnswer | WorkerEnd:
    """Return the answer to `request`, or the fault or the end of the worker that came instead.

    Raises:
        InfraError: The worker itself failed, or answered something else.
    """
    answer = worker.ask(request, timeout_s)
    if isinstance(answer, kind | FaultAnswer | WorkerEnd):
        return answer
    if isinstance(answer, Failed):
        raise InfraError(f"the GPU worker failed: {answer.message}")
    raise InfraError(f"the GPU worker answered {answer.kind} to {request.kind}")
