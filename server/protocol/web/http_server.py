"""`kopt serve --http`: one server process, from the first request to its end by a signal.

It ends within two seconds, whatever is open: jobs are records, and the next server resumes them.
"""

import asyncio
import contextlib
import logging
import math
import os
import sys
import threading
from collections.abc import Callable, Generator
from functools import partial
from socket import socket
from typing import Any, NoReturn

import click
import uvicorn
from mcp.server import MCPServer
from starlette.types import ASGIApp

from kopt.server.protocol.stdio import SIGNALS, Runners

from .http_app import http_app
from .http_connection import Admission, LingeringClose, timed_connection, timed_requests
from .listen_address import Doorway
from .request_limits import HttpLimits

_GRACE_S = 0.3
"""Time for replies that are nearly there; then streams are cut."""
_CUT_S = 1
"""Time for streams to end after that."""
_LAST_RESORT_S = 1.8
"""Time after which the process ends, whatever still runs in it."""


class QuietServer(uvicorn.Server):
    """uvicorn, bounded and without signal handlers; it says nothing but what goes wrong."""

    def __init__(
        self, app: ASGIApp, admission: Admission, say_ready: Callable[[], None] | None = None
    ) -> None:
        """Serve `app` to whom `admission` lets in; `say_ready` is called once it answers."""
        self._say_ready = say_ready
        limits = admission.limits
        self._lingering = LingeringClose(limits)
        config = uvicorn.Config(
            timed_requests(app),
            http="h11",
            h11_max_incomplete_event_size=limits.header_bytes,
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # anyone on this machine could claim to be someone else
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=math.ceil(limits.idle_s),
            timeout_graceful_shutdown=_CUT_S,
        )
        config.load()
        connection = timed_connection(config.http_protocol_class, admission, self._lingering)
        config.http_protocol_class = connection
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone: uvicorn's own handlers would raise them again at the end."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to answer, then say so."""
        await super().startup(sockets)
        if self._say_ready is not None:
            self._say_ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Leave no connection open."""
        await super().shutdown(sockets)
        self._lingering.end()

    def end(self) -> None:
        """Take no more requests, and cut soon what is open."""
        self.should_exit = True
        # What uvicorn says about streams that are cut is no fault.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        asyncio.get_running_loop().call_later(_GRACE_S, self._cut)

    def _cut(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()


def serve_http(server: MCPServer[Any], doorway: Doorway, runners: Runners) -> NoReturn:
    """Serve until a signal comes; ends the process with 128 and the signal."""
    asyncio.run(_serve(server, doorway, runners))
    raise AssertionError("unreachable: _serve ends the process")


async def _serve(server: MCPServer[Any], doorway: Doorway, runners: Runners) -> None:
    limits = HttpLimits()
    app = http_app(server, doorway.access, limits)
    admission = Admission(limits, serves_strangers=doorway.access.tokens is not None)
    http = QuietServer(app, admission, partial(_say_where, doorway))
    await serve_until_signal(http, doorway.listener, runners)


async def serve_until_signal(http: QuietServer, listener: socket, runners: Runners) -> NoReturn:
    """Serve until a signal comes; ends the process with 128 and the signal, within two seconds."""
    ended_by: list[int] = []

    def end(number: int) -> None:
        runners.kill_all()
        if ended_by:  # asked again: at once
            os._exit(128 + number)
        ended_by.append(number)
        last_resort = threading.Timer(_LAST_RESORT_S, os._exit, [128 + number])
        last_resort.daemon = True
        last_resort.start()
        http.end()

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, end, number)
    try:
        await runners.start()
        await http.serve(sockets=[listener])
    finally:
        runners.kill_all()
    sys.stderr.flush()
    os._exit(128 + ended_by[0])  # uvicorn ends for no other reason


def _say_where(doorway: Doorway) -> None:
    who = "whoever has a token" if doorway.access.tokens else "this user's processes alone"
    click.echo(f"kopt: listening on {doorway.url} for {who}", err=True)
