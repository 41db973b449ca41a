"""One program run to its end: bounded in time and output, and ended when the run is stopped.

It has a session of its own, so that Ctrl-C reaches kopt alone, which then ends the whole group of
the program. If kopt itself is killed, Linux ends the program.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from kopt.search.models.errors import Halt, Stopped

Cut = Literal["", "time", "output"]
_LOOK_EVERY_S = 0.1
_PIECE_BYTES = 1 << 16
_MOST_ERROR_BYTES = 1 << 16
_SIGTERM_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks Linux for SIGTERM when the parent dies (PR_SET_PDEATHSIG), which `exec` keeps.

Source:
    prctl(2)
"""


@dataclass(frozen=True)
class ProgramStart:
    """A program, what it reads and where it runs."""

    words: tuple[str, ...]
    """The path of the program, and its arguments."""
    text: str
    """Its standard input."""
    folder: Path
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class ProcessLimits:
    """The most that one program may take."""

    seconds: float = 3600.0
    """128,000 tokens at 35 a second; beyond that it is not going anywhere."""
    output_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True)
class Ended:
    """A program that has ended."""

    code: int
    output: str
    errors: str
    """The beginning of its standard error."""
    cut: Cut = ""
    """Which limit ended it; empty: none."""


def run_bounded(asked: ProgramStart, halt: Halt, limits: ProcessLimits) -> Ended:
    """Return how the program ended; nothing of it is left behind.

    Raises:
        OSError: It cannot be started.
        Stopped: The run was stopped meanwhile.
    """
    launcher = (sys.executable, "-I", "-S", "-c", _SIGTERM_WITH_PARENT, str(os.getpid()))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        (*launcher, *asked.words),
        cwd=asked.folder,
        env=dict(asked.environment),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    ) as process:
        try:
            talk = _Talk(process, asked.text.encode(errors="replace"), limits)
            cut = talk.carry_on(halt)
        finally:
            _end(process)
        return Ended(process.wait(), talk.output, talk.errors, cut)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the group, also what is left of it where its first process has ended by itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class _Talk:
    """What goes into a process and what comes out of it."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes, limits: ProcessLimits):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._input: IO[bytes] = process.stdin
        self._output: IO[bytes] = process.stdout
        self._process = process
        self._left = memoryview(given)
        self._limits = limits
        self._said = {process.stdout: bytearray(), process.stderr: bytearray()}
        self._selector = selectors.DefaultSelector()
        for stream in self._said:
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        os.set_blocking(self._input.fileno(), False)
        self._selector.register(self._input, selectors.EVENT_WRITE)

    @property
    def output(self) -> str:
        """What the process wrote to its standard output."""
        return self._said[self._output].decode(errors="replace")

    @property
    def errors(self) -> str:
        """The beginning of what it wrote to its standard error."""
        (errors,) = (said for stream, said in self._said.items() if stream is not self._output)
        return errors.decode(errors="replace")

    def carry_on(self, halt: Halt) -> Cut:
        """Write and read until the process has ended or a limit is reached.

        Raises:
            Stopped: The run was stopped meanwhile.
        """
        deadline = time.monotonic() + self._limits.seconds
        with self._selector:
            # Not until its pipes end: a process that it leaves behind may hold them for ever.
            while not self._has_ended:
                if halt.is_stopped:
                    raise Stopped("the run is being stopped")
                if time.monotonic() > deadline:
                    return "time"
                self._move(_LOOK_EVERY_S)
                if len(self._said[self._output]) > self._limits.output_bytes:
                    return "output"
            while self._move(0.0):
                if len(self._said[self._output]) > self._limits.output_bytes:
                    return "output"
        return ""

    @property
    def _has_ended(self) -> bool:
        """Whether it has, without taking leave of it: its group is its own until `_end`."""
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, how) is not None

    def _move(self, seconds: float) -> bool:
        """Move what can be moved within `seconds`; return whether anything was."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if key.fileobj is self._input:
                self._write()
            else:
                self._read(key.fd)
        return bool(ready)

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._input.fileno(), self._left[:_PIECE_BYTES]) :]
        except BrokenPipeError:  # it reads no more of it; why, it says itself
            self._left = self._left[:0]
        if not self._left:
            self._selector.unregister(self._input)
            with suppress(BrokenPipeError):
                self._input.close()

    def _read(self, descriptor: int) -> None:
        (stream,) = (one for one in self._said if one.fileno() == descriptor)
        piece = os.read(descriptor, _PIECE_BYTES)
        if not piece:
            self._selector.unregister(stream)
            return
        said = self._said[stream]
        if stream is self._output:
            said += piece
        else:
            said += piece[: max(0, _MOST_ERROR_BYTES - len(said))]
