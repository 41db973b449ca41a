"""The reply to a call that cannot be carried out as it is written.

Plain text, because clients drop the structured part of an error. It is not for candidates that
fail: those are results.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from mcp.types import CallToolResult, TextContent

from kopt.kernels.yaml_fields import either

_SHOWN = 200


def refusal(message: str) -> CallToolResult:
    """Return an error that the model reads: what was wrong, what is allowed, what to do."""
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def shown(value: object) -> str:
    """Return `value` as messages show it, cut to a line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean a or b?", or what there is if nothing is near."""
    names = list(known)
    close = get_close_matches(name[:_SHOWN], names, n=3)
    return f"did you mean {either(close)}?" if close else f"allowed: {', '.join(names)}"
