"""A command on a terminal of its own: what it shows, and what a person types."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_DEADLINE_S = 60.0


class OnTerminal:
    """A process whose three streams are one terminal, from `with` to its end."""

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        folder: Path | None = None,
    ) -> None:
        """Start `command`, in `folder` if one is named."""
        self.shown = b""
        """Everything that it has shown so far."""
        self._terminal, theirs = pty.openpty()
        self.began_s = time.monotonic()
        """When it was started."""
        self.process = subprocess.Popen(
            list(command),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=dict(environment),
            cwd=folder,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def read_until(self, words: bytes) -> bytes:
        """Return what was shown once `words` are among it; fails after a minute."""
        end = time.monotonic() + _DEADLINE_S
        while words not in self.shown:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))
            assert ready, self.shown
            self.shown += os.read(self._terminal, 4096)
        return self.shown

    def type(self, text: bytes) -> None:
        """Type `text`."""
        os.write(self._terminal, text)

    def ending(self) -> int:
        """Return the exit code, once everything was read."""
        try:
            while piece := os.read(self._terminal, 4096):
                self.shown += piece
        except OSError:  # the command has closed its side
            pass
        return self.process.wait(_DEADLINE_S)
