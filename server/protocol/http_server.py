"""`kopt serve --http`: one server process, from the first request to its end by a signal.

It ends within two seconds, whatever is open: jobs are records, and the next server resumes them.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator

import click
import uvicorn
from starlette.types import ASGIApp

from .listen_address import Doorway
from .request_limits import HttpLimits
from .timed_connection import timed_connection

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 1
"""For replies that are nearly there; then streams are cut."""
_LAST_RESORT_S = 1.8
"""Then the process ends, whatever still runs in it."""
_IDLE_S = 15
"""Between two requests of one connection."""


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with one line when it listens."""

    url = ""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to `serve_http`: uvicorn's handlers would raise them again at the end."""
        yield

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets=sockets)  # type: ignore[arg-type]
        click.echo(f"kopt: listening on {self.url}", err=True)


def serve_http(
    app: ASGIApp, doorway: Doorway, kill_all: Callable[[], None], limits: HttpLimits | None = None
) -> int:
    """Serve `app` until a signal, and return the process's exit code: 128 and the signal.

    Args:
        app: From `http_app`.
        doorway: From `open_doorway`; its socket is closed at the end.
        kill_all: Ends the children that work on jobs, at once and without waiting.
        limits: Those that `app` was built with.
    """
    return asyncio.run(_serve(app, doorway, kill_all, limits or HttpLimits()))


async def _serve(
    app: ASGIApp, doorway: Doorway, kill_all: Callable[[], None], limits: HttpLimits
) -> int:
    server = _Server(uvicorn_config(app, limits))
    server.url = doorway.url
    ended_by: list[int] = []

    def end(number: int) -> None:
        if ended_by:  # asked again: at once
            os._exit(128 + number)
        ended_by.append(number)
        kill_all()
        # What uvicorn says about streams that it cuts is no fault.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        last_resort = threading.Timer(_LAST_RESORT_S, os._exit, [128 + number])
        last_resort.daemon = True
        last_resort.start()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    await server.serve(sockets=[doorway.listener])
    return 128 + ended_by[0] if ended_by else 0


def uvicorn_config(app: ASGIApp, limits: HttpLimits) -> uvicorn.Config:
    """Return how uvicorn serves `app`: quiet, bounded, and deaf to proxy headers."""
    return uvicorn.Config(
        app,
        http=timed_connection(limits.header_s),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # anyone on this machine could claim to be someone else
        server_header=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
