"""Serving one client over stdin and stdout, and every way in which that ends.

The SDK alone would hang on SIGINT, die on SIGTERM without a word to the jobs, and leave their
processes running. Here each ending kills the runners first and then leaves without waiting for
anything: what a job had finished is on disk, and the next server takes it up.
"""

import asyncio
import os
import select
import signal
import sys
from typing import Any, NoReturn, Protocol

from anyio import BrokenResourceError
from mcp.server import MCPServer

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Runners(Protocol):
    """The processes behind a server: `JobHost`."""

    async def start(self) -> None:
        """Take up what earlier servers left."""
        ...

    def kill_all(self) -> None:
        """Kill every process at once."""
        ...


def serve_stdio(server: MCPServer[Any], runners: Runners) -> NoReturn:
    """Serve until stdin closes or a signal comes; ends the process.

    The exit code is 0 when the client closed stdin or went away, else 128 + the signal.
    """
    asyncio.run(_serve(server, runners))
    raise AssertionError("unreachable: _serve ends the process")


async def _serve(server: MCPServer[Any], runners: Runners) -> None:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, _leave, runners, 128 + number)
    if (wire := _watched_stdout()) is not None:
        loop.add_reader(wire, _leave, runners, 0)
    # Beside the first messages: the handshake need not wait for what earlier servers left.
    starting = loop.create_task(runners.start())
    try:
        await server.run_stdio_async()
    except* (BrokenPipeError, BrokenResourceError):
        pass  # the client closed our stdout: it is gone, as if it had closed stdin
    finally:
        starting.cancel()
        runners.kill_all()
    _leave(runners, 0)


def _watched_stdout() -> select.epoll | None:
    """Return what becomes readable when stdout has no reader any more; None for a plain file.

    The SDK would notice at the next message, and then still wait for stdin.
    """
    wire = select.epoll()
    try:
        # No event is asked for: errors and hang-ups are reported all the same. The duplicate stays
        # the client's, whereas the SDK points fd 1 elsewhere.
        wire.register(os.dup(1), 0)
    except PermissionError:  # epoll knows no regular files
        wire.close()
        return None
    return wire


def _leave(runners: Runners, code: int) -> NoReturn:
    """End the process now: no thread, lock or open pipe is waited for."""
    runners.kill_all()
    sys.stderr.flush()
    os._exit(code)
