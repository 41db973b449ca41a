"""MCP clients as their makers ship them, each run in a home folder of the test's own.

Nothing of the user's configuration is read or written, and whatever is not on the loopback is
behind a proxy that does not answer. Which clients there are: tests/clients/install.sh.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.command_line import Ending
from support.terminal_client import TerminalClient

KOPT = Path(sys.executable).with_name("kopt")
OPTIONAL = ("codex", "gemini", "opencode")
_NO_PROXY_LISTENS = "http://127.0.0.1:9"
_END_LIMIT_S = 5.0
_LIMIT_S = 240.0  # several times what the slowest needs on two busy cores


def environment(home: Path) -> dict[str, str]:
    """Return what a process gets that has `home` for its own: no keys, no proxy to the outside."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "HTTP_PROXY": _NO_PROXY_LISTENS,
        "HTTPS_PROXY": _NO_PROXY_LISTENS,
        "NO_PROXY": "127.0.0.1,localhost",
    }


@dataclass(frozen=True)
class Clients:
    """The clients in one folder, and where they keep their state."""

    installed: Path
    """$KOPT_CLIENTS."""
    home: Path
    """HOME of every client."""
    project: Path
    """The folder in which every client is started."""

    def run(self, name: str, *words: object, **more: str) -> Ending:
        """Run the client `name` to its end; `more` is added to its environment."""
        program = self.program(name)
        return self._run(program, words, {"PATH": self._path, **more})

    def on_terminal(self, name: str, *words: object, **more: str) -> TerminalClient:
        """Return the client `name` as a person runs it."""
        command = (str(self.program(name)), *map(str, words))
        variables = environment(self.home) | {"PATH": self._path, **more}
        return TerminalClient(command, self.project, variables)

    def program(self, name: str) -> Path:
        """Return the client's program; skips or fails the test where it is not installed."""
        program = self.installed / "bin" / name
        if not program.exists():
            end = pytest.skip if name in OPTIONAL else pytest.fail
            end(f"{name} is not installed; to have it: tests/clients/install.sh {name}")
        return program

    @property
    def _path(self) -> str:
        return f"{self.installed / 'bin'}:{KOPT.parent}:{os.environ['PATH']}"

    def kopt(self, *words: object) -> Ending:
        """Run `kopt` where the clients run."""
        return self._run(KOPT, words, {})

    def _run(self, program: Path, words: tuple[object, ...], more: dict[str, str]) -> Ending:
        process = subprocess.Popen(
            [program, *map(str, words)],
            cwd=self.project,
            env=environment(self.home) | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=_LIMIT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return Ending(process.returncode, stdout, stderr)

    def left_over(self) -> list[int]:
        """Return the processes that a client started and that outlive it by more than 5 s."""
        deadline = time.monotonic() + _END_LIMIT_S
        mark = f"\0HOME={self.home}\0".encode()
        return [pid for pid in _processes_with(mark) if not _ends(pid, deadline)]


def _processes_with(mark: bytes) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if mark in b"\0" + (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def _ends(pid: int, deadline: float) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0])
    finally:
        os.close(descriptor)
