"""Runs one prepared command line to its end: bounded output, a deadline, nothing left behind.

A process ends by itself, at its deadline, or when another thread sets an event. What it may do is
in its command line; the launcher at the other end of the status pipe ends every descendant before
it reports.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Literal

from kopt.config.pollable_event import PollableEvent

from .policy import SandboxedRun, SandboxLevel, SandboxPolicy

CHUNK_BYTES = 1 << 16
GRACE_S = 0.5
TAIL_BYTES = 8192
REAP_S = 5.0
"""Longest wait for the end of killed processes; a process in uninterruptible sleep takes longer."""


@dataclass(frozen=True)
class Spawn:
    """One command line with everything that its process gets, and what ends it from outside."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    policy: SandboxPolicy
    """It decides the folder, the deadline and how much output is kept."""
    level: SandboxLevel
    status_read: int
    status_write: int
    """The two ends of the launcher's pipe; both are closed by `supervise`."""
    stop: PollableEvent | None = None
    """Set from another thread: everything is ended at once."""


@dataclass(frozen=True)
class Ending:
    """How a process ended, and what its launcher said of that."""

    run: SandboxedRun
    """Without its return code, which is that of a killed process."""
    status: bytes
    """The launcher's words; empty if it was killed."""


class _Stream:
    """One pipe, of which the first `limit` bytes are kept, and the last few."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self.limit = limit
        self.kept = bytearray()
        self.tail = b""
        self.dropped = 0
        self.ended = False

    def read_some(self) -> None:
        """Read what is there, at most one chunk."""
        chunk = os.read(self.descriptor, CHUNK_BYTES)
        room = self.limit - len(self.kept)
        self.kept += chunk[:room]
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]
        self.dropped += max(0, len(chunk) - room)
        self.ended = not chunk


def supervise(spawn: Spawn) -> Ending:
    """Start the process, read its pipes until all are closed, and end it in every case.

    Hanging up the status pipe is how the launcher is told to end everything: unlike a signal to
    bubblewrap it works in order, so that no descendant is left when this function returns.

    Raises:
        OSError: The command cannot be started.
    """
    started = time.monotonic()
    with os.fdopen(spawn.status_read, "rb", buffering=0) as status_pipe:
        process = _start(spawn)
        stdout, stderr = _pipe(process.stdout), _pipe(process.stderr)
        status = _Stream(status_pipe.fileno(), CHUNK_BYTES)
        outputs = [_Stream(pipe.fileno(), spawn.policy.output_bytes) for pipe in (stdout, stderr)]
        with stdout, stderr:
            try:
                deadline = started + spawn.policy.wall_s
                reason = _read_until([status, *outputs], deadline, spawn.stop)
                if reason != "ended":
                    status_pipe.close()
                    _read_until(outputs, time.monotonic() + REAP_S)
            finally:  # reached by an interrupt too
                status_pipe.close()
                _reap(process)
    run = SandboxedRun(
        returncode=-signal.SIGKILL,
        stdout=bytes(outputs[0].kept),
        stderr=bytes(outputs[1].kept),
        stderr_end=outputs[1].tail,
        timed_out=reason == "deadline",
        stopped=reason == "stopped",
        dropped_bytes=outputs[0].dropped + outputs[1].dropped,
        level=spawn.level,
        elapsed_s=time.monotonic() - started,
    )
    return Ending(run, bytes(status.kept))


def _start(spawn: Spawn) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            spawn.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(spawn.environment),
            cwd=spawn.policy.writable[0],
            pass_fds=(spawn.status_write,),
            start_new_session=True,
        )
    finally:
        os.close(spawn.status_write)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("Popen was asked for this pipe")
    return stream


def _read_until(
    streams: Sequence[_Stream], deadline: float, stop: PollableEvent | None = None
) -> Literal["ended", "deadline", "stopped"]:
    """Read until every pipe is at its end, the deadline has passed or `stop` is set.

    Once the first stream has ended (the launcher's, which ends last), no process should be left to
    write to the others: a short grace follows, which is no time-out.
    """
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            if not stream.ended:
                selector.register(stream.descriptor, selectors.EVENT_READ, stream)
        if stop is not None:
            selector.register(stop, selectors.EVENT_READ)
        while not all(stream.ended for stream in streams):
            if streams[0].ended:
                deadline = min(deadline, time.monotonic() + GRACE_S)
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            for key, _ in ready:
                if key.fileobj is stop:
                    return "ended" if streams[0].ended else "stopped"
                key.data.read_some()
                if key.data.ended:
                    selector.unregister(key.fd)
            if time.monotonic() >= deadline and not all(stream.ended for stream in streams):
                return "ended" if streams[0].ended else "deadline"
    return "ended"


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
