"""Stands between a server and a runner, so that the runner ends with the server, even by kill -9.

Run as a script, `python -I -S guard.py <server's pid> COMMAND...`, as the first process of a
session. The kernel tells it when the server dies; then it kills its whole process group, itself
included. What a runner put into sandboxes ends with the runner; the guard inherits it and waits for
its end. It imports nothing of kopt: it starts in milliseconds and stays small.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LEFTOVERS_S = 5
"""Longest time that children of a dead runner get to end by themselves."""


def _end_group(_signal: int, _frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def _wait_for_orphans() -> None:
    with suppress(ChildProcessError):
        while True:
            os.wait()


def main(server: int, command: list[str]) -> None:
    """Run `command` to its end and say on stdout how it ended."""
    signal.signal(signal.SIGTERM, _end_group)
    signal.signal(signal.SIGALRM, _end_group)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != server:  # it died before the kernel was asked to tell
        sys.exit(1)
    code = subprocess.call(command)
    line = json.dumps({"kind": "ended", "code": code})
    try:
        # Behind a line that the runner may have left unfinished.
        os.write(1, f"\n{line}\n".encode())
        signal.alarm(_LEFTOVERS_S)
        _wait_for_orphans()
    finally:
        os.killpg(0, signal.SIGKILL)  # what the runner has left behind, and this process


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
