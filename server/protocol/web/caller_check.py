"""Who calls over HTTP: the holder of a bearer token, or a process of the server's own user."""

import asyncio

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from kopt.server.protocol.caller import CALLER, LOCAL

from .http_connection import connection_of
from .http_refusal import Check, refused, refused_for_now, unauthorized
from .local_peer import Peer, process_of
from .request_limits import RateLimiter
from .token_file import Tokens

_FAILURES_PER_S = 1.0
_FAILURES_AT_ONCE = 20
_MAX_KNOWN_PROCESSES = 1024


def token_callers(tokens: Tokens) -> Check:
    """Return the check of a bearer token: whose it is becomes the caller."""
    failures = RateLimiter(_FAILURES_PER_S, _FAILURES_AT_ONCE)

    async def check(scope: Scope) -> Response | None:
        given = Headers(scope=scope).getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        holder = tokens.holder(token.strip().encode("latin-1"))
        if scheme.lower() == "bearer" and holder is not None:
            scope[CALLER] = holder
            return None
        client = scope.get("client")
        if wait_s := failures.wait_s(client[0] if client else ""):
            return refused_for_now("kopt: too many requests without a valid token", wait_s)
        return unauthorized(
            "kopt: send 'Authorization: Bearer TOKEN' with a token out of the file that the"
            f" server was started with (--token-file); {_token_fault(given, scheme)}"
        )

    return check


def local_callers() -> Check:
    """Return the check of a server without tokens: only processes of its own user may call.

    Each process is a caller of its own, so that several agents of one user share GPUs fairly. The
    end of an SSH tunnel counts as its user's process. A request is refused of which it was not
    found out, when the connection was accepted, who is at its other end.
    """
    callers: dict[int, str] = {}  # by the socket's inode: finding a process takes milliseconds

    async def check(scope: Scope) -> Response | None:
        connection = connection_of(scope)
        peer = None if connection is None else connection.peer
        if peer is None or not peer.is_own:
            return refused(403, "kopt cannot tell whose process this is; it serves its own user's")
        if peer.inode not in callers:
            if len(callers) >= _MAX_KNOWN_PROCESSES:
                del callers[next(iter(callers))]
            callers[peer.inode] = await _caller(peer)
        scope[CALLER] = callers[peer.inode]
        return None

    return check


async def _caller(peer: Peer) -> str:
    pid = await asyncio.to_thread(process_of, peer.inode)
    return LOCAL if pid is None else f"{LOCAL}-{pid}"


def _token_fault(given: list[str], scheme: str) -> str:
    if not given:
        return "no Authorization header came"
    if len(given) > 1:
        return "more than one Authorization header came"
    return "this token is not in it" if scheme.lower() == "bearer" else "the scheme is not Bearer"
