"""The worker's main loop: read a request, let the engine do it, answer.

    python -P -m kopt.tools.gpu.worker MODULE:CLASS FOLDER TOKEN [MODULE...]

Requests and answers go through FIFOs in FOLDER; whatever is printed, by libraries or by device
code, goes to stderr, which nobody reads as a message. It ends when kopt closes its end. What the
engine does with a GPU is not here.
"""

import os
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Protocol

from kopt.config.errors import KoptError
from kopt.tools.gpu.channel import Channel, ChannelClosed, open_worker_end
from kopt.tools.gpu.messages import ANSWER, REQUEST, Answer, Failed, Hello, Request

_MESSAGE_LIMIT = 1000


class Engine(Protocol):
    """What does the work of a worker; made once, without arguments.

    `cuda_engine.py` works on a GPU; a scripted engine in tests/support stands in where there is
    none. A candidate's failure is part of an answer; an exception means that the worker failed.
    """

    def answer(self, request: Request, folder: Path) -> Answer:
        """Do what `request` asks; `folder` is where the array files of a message lie."""
        ...


def main(engine_name: str, folder: Path, token: bytes, preload: list[str]) -> int:
    """Serve until the other end is closed; 1 if there is nothing to serve with."""
    os.dup2(2, 1)
    channel = open_worker_end(folder, token)
    try:
        engine: Engine = pkgutil.resolve_name(engine_name)()
    except Exception as error:  # the outermost frame: no engine, whatever the reason
        _send(channel, _failed(error))
        return 1
    for module in preload:
        try:
            pkgutil.resolve_name(module)
        except Exception:  # a library that is missing or broken: its first use says so
            traceback.print_exc()
    _send(channel, Hello(pid=os.getpid()))
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return 0
        _send(channel, _answer(engine, folder, frame))


def _answer(engine: Engine, folder: Path, frame: bytes) -> Answer:
    try:
        return engine.answer(REQUEST.validate_json(frame), folder)
    except Exception as error:  # the outermost frame: a worker tells what broke and goes on
        return _failed(error)


def _failed(error: Exception) -> Failed:
    """One line for the other end; the whole story goes to stderr."""
    traceback.print_exception(error)
    lines = str(error).splitlines() or [""]
    text = lines[0] if isinstance(error, KoptError) else f"{type(error).__name__}: {lines[0]}"
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return Failed(message=f"{text}{notes}"[:_MESSAGE_LIMIT])


def _send(channel: Channel, answer: Answer) -> None:
    channel.send(ANSWER.dump_json(answer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), bytes.fromhex(sys.argv[3]), sys.argv[4:]))
