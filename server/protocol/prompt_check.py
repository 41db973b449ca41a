"""The check of what a client asks of prompts, in every protocol era.

The SDK answers a mistake with "Internal server error" and a traceback on stderr. Here each becomes
an error of the protocol that says what is allowed. What an argument means is not judged here: the
prompts do that themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver.prompts import Prompt
from mcp.types import INVALID_PARAMS

from .refusal import nearest, shown


def checked_prompts(prompts: Sequence[Prompt]) -> ServerMiddleware[Any]:
    """Return the middleware that refuses to fill in prompts whose arguments do not fit.

    Args:
        prompts: Those that the server offers; none if it is read-only.
    """
    by_name = {prompt.name: prompt for prompt in prompts}

    async def check(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "prompts/get":
            return await call_next(ctx)
        params: Mapping[str, Any] = ctx.params or {}
        name: Any = params.get("name")
        arguments: Any = params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return await call_next(ctx)  # no valid request: the SDK says so
        if not by_name:
            raise MCPError(INVALID_PARAMS, "no prompt is offered: this server is read-only")
        if name not in by_name:
            raise MCPError(
                INVALID_PARAMS, f"there is no prompt {shown(name)}; {nearest(name, by_name)}"
            )
        mistakes = _mistakes(by_name[name], cast(dict[str, Any], arguments))
        if mistakes:
            raise MCPError(INVALID_PARAMS, f"{name}: {'; '.join(mistakes)}")
        return await call_next(ctx)

    return check


def _mistakes(prompt: Prompt, given: Mapping[str, Any]) -> list[str]:
    """Return which arguments are missing and which there are not, with what would be right."""
    known = {argument.name: argument for argument in prompt.arguments or []}
    missing = [
        f"{name} is missing: {argument.description}"
        for name, argument in known.items()
        if argument.required and name not in given
    ]
    unknown = [name for name in given if name not in known]
    return missing + [
        f"unknown argument {shown(name)}, {nearest(name, known)}" for name in unknown[:5]
    ]
