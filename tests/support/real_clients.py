"""MCP clients as their makers ship them, each run in a home folder of the test's own.

Nothing of the user's configuration is read or written, and whatever is not on the loopback is
behind a proxy that does not answer. Which clients there are: tests/clients/install.sh.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.command_line import Ending

KOPT = Path(sys.executable).with_name("kopt")
_NO_PROXY_LISTENS = "http://127.0.0.1:9"
_LIMIT_S = 240.0  # several times what the slowest needs on two busy cores


def environment(home: Path) -> dict[str, str]:
    """Return what a process gets that has `home` for its own: no keys, no proxy to the outside."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "KOPT_HOME": str(home / "kopt-home"),
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
    scratch: Path

    @property
    def home(self) -> Path:
        """HOME of every client."""
        return self.scratch / "home"

    @property
    def project(self) -> Path:
        """The folder in which every client is started."""
        folder = self.scratch / "project"
        folder.mkdir(exist_ok=True)
        return folder

    def run(self, name: str, *words: object, **more: str) -> Ending:
        """Run the client `name` to its end; `more` is added to its environment.

        Skips the test where the client was not installed, which only the optional ones may be.
        """
        program = self.installed / "bin" / name
        if not program.exists():
            pytest.skip(f"{name} is not installed; to have it: tests/clients/install.sh all")
        variables = environment(self.home) | more
        variables["PATH"] = f"{self.installed / 'bin'}:{variables['PATH']}"
        process = subprocess.Popen(
            [program, *map(str, words)],
            cwd=self.project,
            env=variables,
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
