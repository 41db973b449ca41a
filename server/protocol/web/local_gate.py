"""The check of a server without tokens: only processes of its own user may call.

Each process is a caller of its own, so that several agents of one user share GPUs fairly. The end
of an SSH tunnel counts as its user's process. Who it is was found out when the connection was
accepted (admission.py); a request of which that is not known is refused.
"""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from kopt.server.protocol.caller import CALLER, LOCAL

from .http_refusal import refused
from .local_peer import Peer, process_of
from .timed_connection import PEER

_MAX_KNOWN = 1024


class LocalGate:
    """Lets requests through that come from the user's own processes."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._callers: dict[int, str] = {}
        """By the socket's inode: finding a process takes some milliseconds."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        peer = scope.get("state", {}).get(PEER)
        if not isinstance(peer, Peer) or not peer.is_own:
            reply = refused(403, "kopt cannot tell whose process this is; it serves its own user's")
            await reply(scope, receive, send)
            return
        await self._app({**scope, CALLER: await self._caller(peer)}, receive, send)

    async def _caller(self, peer: Peer) -> str:
        known = self._callers.get(peer.inode)
        if known is None:
            pid = await asyncio.to_thread(process_of, peer.inode)
            known = LOCAL if pid is None else f"{LOCAL}-{pid}"
            if len(self._callers) >= _MAX_KNOWN:
                del self._callers[next(iter(self._callers))]
            self._callers[peer.inode] = known
        return known
