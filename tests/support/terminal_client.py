"""A client on a terminal, the way a person runs it: what it draws is read and thrown away."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_ROWS, _COLUMNS = 50, 160
_LOOK_AGAIN_S = 0.2
_END_LIMIT_S = 10.0


@dataclass(frozen=True)
class TerminalClient:
    """What is to be run."""

    command: tuple[str, ...]
    project: Path
    environment: dict[str, str]

    def run_until(self, is_reached: Callable[[], bool], limit_s: float = 120.0) -> bool:
        """Run until `is_reached` says so, then end it; False where it ends or time is up before."""
        terminal, theirs = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        process = subprocess.Popen(
            self.command,
            cwd=self.project,
            env=self.environment | {"TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            deadline = time.monotonic() + limit_s
            while not is_reached() and time.monotonic() < deadline and process.poll() is None:
                _read_for(terminal, _LOOK_AGAIN_S)
            return is_reached()
        finally:
            _end(process, terminal)


def _read_for(terminal: int, seconds: float) -> None:
    if select.select([terminal], [], [], seconds)[0]:
        try:
            os.read(terminal, 65536)
        except OSError:  # the client has closed its side
            return


def _end(process: "subprocess.Popen[bytes]", terminal: int) -> None:
    process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + _END_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        _read_for(terminal, _LOOK_AGAIN_S)  # a full terminal would hold up its end
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    os.close(terminal)
