"""The caller of a tool: a short name without a secret, and whose jobs and runs it may see.

Over HTTP a token or the process tells callers apart, and nothing that a client says about itself
does. Over stdio there is one client, so what it calls itself is good enough for a name.
"""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context

from kopt.config.folder_owner import LOCAL_OWNER

CALLER = "kopt.caller"
"""Key of an ASGI scope: the `Caller`, as the gates found it."""
LOCAL = "local"
"""A process of the user who runs the server, over stdio or loopback."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._/-]+")
_MAX_NAME = 60


@dataclass(frozen=True)
class Caller:
    """One caller of a server."""

    name: str
    """For sharing GPUs fairly, e.g. `token-2` or `local codex`."""
    owner: str = LOCAL_OWNER
    """The owner of the jobs and runs that it begins, and the only one whose it sees; the local
    owner sees those of all."""


def caller_of(ctx: Context[Any, Any]) -> Caller:
    """Return the caller of the tool call or reading that `ctx` belongs to."""
    found = _found_caller(ctx.request_context.request)
    if found is not None:
        return found
    name = _client_name(ctx)
    return Caller(f"{LOCAL} {name}" if name else LOCAL)


def owner_of(request: object) -> str:
    """Return whose jobs the sender of an HTTP request may see; of stdio there is none."""
    found = _found_caller(request)
    return LOCAL_OWNER if found is None else found.owner


_OWNER: ContextVar[str] = ContextVar("owner of the runs and jobs that a request may name")


async def noting_owner(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Note whose request this is, for handlers that the SDK does not tell: a middleware."""
    token = _OWNER.set(owner_of(ctx.request))
    try:
        return await call_next(ctx)
    finally:
        _OWNER.reset(token)


def present_owner() -> str:
    """Return whose jobs and runs the request that is being answered may see."""
    return _OWNER.get()


def _found_caller(request: object) -> Caller | None:
    scope: Any = getattr(request, "scope", None) or {}
    found: Caller | None = scope.get(CALLER)
    return found


def _client_name(ctx: Context[Any, Any]) -> str:
    parameters = ctx.request_context.session.client_params
    name = parameters.client_info.name if parameters else ""
    return _NOT_IN_NAMES.sub(" ", name).strip()[:_MAX_NAME]
