"""Starts a resident evaluator as a process of its own, which outlives the one that starts it."""

import subprocess
import sys

from kopt.config.errors import SetupError
from kopt.config.locks import file_lock
from kopt.config.plain_text import plain
from kopt.config.settings import without_secrets

from .place import ResidentPlace

PROGRAM = ("-P", "-m", "kopt.server.resident")
"""What the Python of an evaluator runs."""
READY = b"ready\n"
"""What an evaluator writes to stdout once it listens."""
_MOST_LOG_BYTES = 1 << 20


def start_evaluator(place: ResidentPlace, idle_s: float) -> None:
    """Start the evaluator of a place, unless one listens there; return once one does.

    Args:
        place: Where it will listen.
        idle_s: How long it stays without a caller, in seconds.

    Raises:
        SetupError: It ended before it listened; the message has its last words.
    """
    with file_lock(place.socket_path.with_suffix(".start")):
        connection = place.connected()
        if connection is not None:
            connection.close()
            return
        _start(place, idle_s)


def _start(place: ResidentPlace, idle_s: float) -> None:
    if place.log.is_file() and place.log.stat().st_size > _MOST_LOG_BYTES:
        place.log.unlink()
    with place.log.open("ab") as log:
        said_before = log.tell()
        process = subprocess.Popen(
            [sys.executable, *PROGRAM, str(place.socket_path), f"{idle_s:g}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=without_secrets(),
            cwd="/",
            start_new_session=True,
        )
    with process:  # the evaluator is its child, and holds stdout
        assert process.stdout is not None
        if process.stdout.read(len(READY)) == READY:
            return
    with place.log.open("rb") as log:
        log.seek(said_before)
        last = plain(log.read().decode(errors="replace")).strip().splitlines()
    why = last[-1] if last else "it ended without a word"
    raise SetupError(f"no resident evaluator of {place.device} can start: {why}")
