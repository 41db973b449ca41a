"""`kopt serve --http` as a process, on a port that the kernel chooses, with what it says kept."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

END_LIMIT_S = 20.0
"""Ten times what is promised, for a busy machine."""


class ServeProcess:
    """The process; leaving the block kills it."""

    def __init__(self, home: Path, *options: object) -> None:
        """Start it and return once it listens."""
        home.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "kopt", "serve", "--http", "--port", "0"),
                *map(str, options),
            ],
            cwd=home,
            env={**os.environ, "KOPT_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            bufsize=0,  # nothing is read ahead of what `communicate` reads
            stderr=subprocess.PIPE,
        )
        self.stderr = ""
        """What it has said, up to the line with its address; after `end`, all of it."""
        self.port = self._port()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def url(self) -> str:
        """The address that a client is given."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def end(self, number: signal.Signals) -> tuple[int, bytes]:
        """Send a signal, wait, and return the exit code and all of stdout."""
        self.process.send_signal(number)
        stdout, rest = self.process.communicate(timeout=END_LIMIT_S)
        self.stderr += rest.decode()
        return self.process.returncode, stdout

    def _port(self) -> int:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line.decode()
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)/mcp", self.stderr):
                return int(found[1])
        raise AssertionError(f"it ended: {self.stderr}")

    def __enter__(self) -> Self:
        """Return itself, already listening."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no process."""
        self.process.kill()
        self.process.communicate()
