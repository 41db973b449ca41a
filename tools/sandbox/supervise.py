"""Runs one prepared command line to its end: bounded output, a deadline, nothing left behind.

It knows nothing about levels or policies beyond the record that it is given; the launcher at the
other end of the status pipe ends every descendant before it reports.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CHUNK_BYTES = 1 << 16
GRACE_S = 0.5
REAP_S = 5.0
"""Longest wait for the end of killed processes; a process in uninterruptible sleep takes longer."""


@dataclass(frozen=True)
class Spawn:
    """One command line with everything that its process gets."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    pass_fd: int
    """Write end of the status pipe."""


@dataclass(frozen=True)
class Bounds:
    """What ends a process or its output from outside."""

    wall_s: float
    output_bytes: int
    kill_signal: signal.Signals
    """SIGTERM for a launcher that ends its descendants; SIGKILL for a pid namespace."""


@dataclass(frozen=True)
class Ending:
    """What came out of the pipes."""

    stdout: bytes
    stderr: bytes
    status: bytes
    """The launcher's words; empty if it was killed."""
    dropped_bytes: int
    timed_out: bool
    elapsed_s: float


class _Stream:
    """One pipe, of which the first `limit` bytes are kept."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self.limit = limit
        self.kept = bytearray()
        self.dropped = 0
        self.ended = False

    def read_some(self) -> None:
        """Read what is there, at most one chunk."""
        chunk = os.read(self.descriptor, CHUNK_BYTES)
        room = self.limit - len(self.kept)
        self.kept += chunk[:room]
        self.dropped += max(0, len(chunk) - room)
        self.ended = not chunk


def supervise(spawn: Spawn, status_read: int, bounds: Bounds) -> Ending:
    """Start the process, read its pipes until all are closed, and end it in every case.

    Args:
        spawn: The command; `pass_fd` is closed here once the process has it.
        status_read: Read end of the status pipe.
        bounds: Deadline and output limit; a signal that ends the process and its descendants.

    Raises:
        OSError: The command cannot be started.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            spawn.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(spawn.environment),
            cwd=spawn.folder,
            pass_fds=(spawn.pass_fd,),
            start_new_session=True,
        )
    finally:
        os.close(spawn.pass_fd)
    stdout, stderr = _pipe(process.stdout), _pipe(process.stderr)
    kept_stdout = _Stream(stdout.fileno(), bounds.output_bytes)
    kept_stderr = _Stream(stderr.fileno(), bounds.output_bytes)
    status = _Stream(status_read, CHUNK_BYTES)
    streams = (status, kept_stdout, kept_stderr)
    with stdout, stderr:
        try:
            timed_out = not _read_until(streams, started + bounds.wall_s)
            if timed_out:
                process.send_signal(bounds.kill_signal)
                _read_until(streams, time.monotonic() + REAP_S)
        except BaseException:  # an interrupt too must not leave the process behind
            process.send_signal(bounds.kill_signal)
            raise
        finally:
            _reap(process)
    return Ending(
        stdout=bytes(kept_stdout.kept),
        stderr=bytes(kept_stderr.kept),
        status=bytes(status.kept),
        dropped_bytes=kept_stdout.dropped + kept_stderr.dropped,
        timed_out=timed_out,
        elapsed_s=time.monotonic() - started,
    )


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("Popen was asked for this pipe")
    return stream


def _read_until(streams: Sequence[_Stream], deadline: float) -> bool:
    """Read until every pipe is at its end (True) or the deadline has passed (False).

    Once the first stream, the launcher's, has ended, no process should be left to write to the
    others: a short grace follows and no time-out.
    """
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            if not stream.ended:
                selector.register(stream.descriptor, selectors.EVENT_READ, stream)
        while selector.get_map():
            if streams[0].ended:
                deadline = min(deadline, time.monotonic() + GRACE_S)
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                return streams[0].ended
            for key, _ in ready:
                stream: _Stream = key.data
                stream.read_some()
                if stream.ended:
                    selector.unregister(stream.descriptor)
            if time.monotonic() >= deadline and not streams[0].ended:
                return False
    return True


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
