"""A process that takes a ticket lock, says what happens line by line, and lets go when told.

Usage: python lock_user.py FOLDER NAME; it prints `waiting N` and `held`, and ends with its input.
"""

import select
import subprocess
import sys
import time
from pathlib import Path

from kopt.tools.gpu.ticket_lock import TicketLock

_BOUND_S = 30.0


class LockUser:
    """The process, seen from a test."""

    def __init__(self, folder: Path, name: str) -> None:
        """Start it; it queues at once."""
        self.process = subprocess.Popen(
            [sys.executable, __file__, folder, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._buffer = b""

    def read(self) -> str:
        """Return the next line, `""` at the end."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + _BOUND_S
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, left))
            assert ready, "the process says nothing"
            chunk = self.process.stdout.read(4096)
            if not chunk:
                return ""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def read_until(self, line: str) -> list[str]:
        """Return the lines before `line`, which must come."""
        before: list[str] = []
        while (read := self.read()) != line:
            assert read, f"it ended before it said {line!r}"
            before.append(read)
        return before

    def release(self) -> None:
        """Let it leave, and wait until it has."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(_BOUND_S)
        self._close()

    def kill(self) -> None:
        """Kill it where it stands."""
        self.process.kill()
        self.process.wait(_BOUND_S)
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._close()

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


def main(folder: Path, name: str) -> None:
    """Hold the lock until the input ends."""
    with TicketLock(name, folder).hold(lambda wait: print("waiting", wait.before, flush=True)):
        print("held", flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
