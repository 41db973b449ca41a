"""The check of a bearer token: plain ASGI, so that streams pass through unchanged.

Whose token it is becomes the caller, by which limits are kept and GPUs are shared out.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kopt.server.protocol.caller import CALLER

from .http_refusal import refused_for_now, unauthorized
from .rate_limit import RateLimit
from .token_file import Tokens

_FAILURES_PER_S = 1.0
_FAILURES_AT_ONCE = 20


class BearerGate:
    """Lets requests through that carry one of the tokens."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._tokens = tokens
        self._failures = RateLimit(_FAILURES_PER_S, _FAILURES_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        given = Headers(scope=scope).getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        holder = self._tokens.holder(token.strip().encode("latin-1"))
        if scheme.lower() == "bearer" and holder is not None:
            await self._app({**scope, CALLER: holder}, receive, send)
            return
        client = scope.get("client")
        wait_s = self._failures.wait_s(client[0] if client else "")
        reply = (
            refused_for_now("kopt: too many requests without a valid token", wait_s)
            if wait_s
            else unauthorized(
                "kopt: send 'Authorization: Bearer TOKEN' with a token out of the file that the"
                f" server was started with (--token-file); {_what_was_wrong(given, scheme)}"
            )
        )
        await reply(scope, receive, send)


def _what_was_wrong(given: list[str], scheme: str) -> str:
    if not given:
        return "no Authorization header came"
    if len(given) > 1:
        return "more than one Authorization header came"
    return "this token is not in it" if scheme.lower() == "bearer" else "the scheme is not Bearer"
