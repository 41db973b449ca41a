"""The caller of a tool, for sharing GPUs fairly: a short name without a secret.

Over HTTP a token or the process tells callers apart, and nothing that a client says about itself
does. Over stdio there is one client, so what it calls itself is good enough.
"""

import re
from typing import Any

from mcp.server.mcpserver import Context

CALLER = "kopt.caller"
"""Key of an ASGI scope: the name of the caller, as the gates found it."""
LOCAL = "local"
"""A process of the user who runs the server, over stdio or loopback."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._/-]+")
_MAX_NAME = 60


def caller_of(ctx: Context[Any, Any]) -> str:
    """Return the caller of the tool call that `ctx` belongs to, e.g. `token-2` or `local codex`."""
    scope: Any = getattr(ctx.request_context.request, "scope", None) or {}
    found: str | None = scope.get(CALLER)
    if found is not None:
        return found
    name = _client_name(ctx)
    return f"{LOCAL} {name}" if name else LOCAL


def _client_name(ctx: Context[Any, Any]) -> str:
    parameters = ctx.request_context.session.client_params
    name = parameters.client_info.name if parameters else ""
    return _NOT_IN_NAMES.sub(" ", name).strip()[:_MAX_NAME]
