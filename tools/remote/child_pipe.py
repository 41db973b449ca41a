"""A child process as what carries a connection: frames to and from it, reasons on its stderr."""

import subprocess
import threading
from contextlib import suppress
from typing import BinaryIO, cast

from kopt.config.plain_text import plain

from .link import CLOSE_S

_TAIL_BYTES = 4096


class ChildPipe:
    """Implements `link.Carrier`, but for why it ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        end_s: float,
        streams: tuple[BinaryIO, BinaryIO] | None = None,
    ) -> None:
        """Take over a process that was just started, with a pipe for stderr.

        Args:
            process: The process.
            end_s: Longest wait for it to end by itself, in seconds.
            streams: What comes from it, and what goes to it; None: the pipes of stdout and stdin.
        """
        self._process, self._end_s = process, end_s
        # PIPE makes what is an IO[bytes] to type checkers.
        self._from, self._to = streams or cast(
            "tuple[BinaryIO, BinaryIO]", (process.stdout, process.stdin)
        )
        self._errors = cast("BinaryIO", process.stderr)
        self._said = b""
        self._stderr = threading.Thread(target=self._read_stderr, name="child-stderr", daemon=True)
        self._stderr.start()

    @property
    def source(self) -> BinaryIO:
        """What comes from it."""
        return self._from

    @property
    def target(self) -> BinaryIO:
        """What goes to it."""
        return self._to

    def hang_up(self) -> None:
        """End a process over which no frames go."""
        with suppress(OSError):
            self._to.close()
        self.end()
        self._from.close()

    def end(self) -> None:
        """Wait for the process to end, or end it."""
        try:
            self._process.wait(self._end_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.join(CLOSE_S)
        if not self._stderr.is_alive():  # else a process that this one left behind holds it open
            self._errors.close()

    def ending(self, wait_s: float) -> tuple[str, int | None]:
        """Return the end of what was written to stderr, and the exit status; None if it runs on.

        What was written last may come a moment after stdout has closed.
        """
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(wait_s)
        self._stderr.join(CLOSE_S)
        text = self._said.decode(errors="replace").replace("\r\n", "\n")  # ssh ends lines so
        return plain(text), status

    def _read_stderr(self) -> None:
        with self._errors:
            while line := self._errors.readline(_TAIL_BYTES):
                self._said = (self._said + line)[-_TAIL_BYTES:]
