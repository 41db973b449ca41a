"""`kopt view`: one server process for a browser on this machine, until a signal ends it."""

import asyncio
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from kopt.config.settings import Settings
from kopt.server.protocol.web.http_connection import Admission
from kopt.server.protocol.web.http_server import QuietServer, serve_until_signal
from kopt.server.protocol.web.listen_address import names_users, open_loopback
from kopt.server.protocol.web.request_limits import HttpLimits

from .run_pages import RunPages
from .view_app import view_app

_TOKEN_BYTES = 24


@dataclass(frozen=True)
class ViewServer:
    """A live view that listens already."""

    http: QuietServer
    listener: socket.socket

    def serve(self) -> NoReturn:
        """Serve until a signal comes; ends the process with 128 and the signal."""
        asyncio.run(serve_until_signal(self.http, self.listener, _NoRunners()))
        raise AssertionError("unreachable: the signal ends the process")


class _NoRunners:
    """Nothing runs behind a view."""

    async def start(self) -> None:
        """Start nothing."""

    def kill_all(self) -> None:
        """End nothing."""


def open_view(settings: Settings, port: int, say_ready: Callable[[str], None]) -> ViewServer:
    """Listen for a view of the runs in the home of `settings`.

    Args:
        settings: Where runs are.
        port: Where to listen; 0: any free port.
        say_ready: Told the address, which holds a secret, once it is answered.

    Raises:
        ToolError: The port cannot be used.
    """
    doorway = open_loopback(port)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    app = view_app(RunPages(settings), doorway.access, token)
    # Other users of this machine do not know the token; where they can be told, they get no page.
    admission = Admission(HttpLimits(), serves_strangers=not names_users())
    address = f"{doorway.url}/{token}/"
    return ViewServer(QuietServer(app, admission, lambda: say_ready(address)), doorway.listener)
