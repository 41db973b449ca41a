"""The reply to a call that cannot be carried out as it is written.

Plain text, because clients drop the structured part of an error. It is not for candidates that
fail: those are results.
"""

import re
from collections.abc import Iterable

from mcp.types import CallToolResult, TextContent

from kopt.config.near_matches import close_names, did_you_mean

_SHOWN = 200
_NEAR = 5
_LEAST_WORD = 3
_WORDS = re.compile(r"[^a-z0-9]+")


def refusal(message: str) -> CallToolResult:
    """Return an error that the model reads: what was wrong, what is allowed, what to do."""
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def shown(value: object) -> str:
    """Return `value` as messages show it, cut to a line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to five of `known` that look like `name`, or share a word with it."""
    names = list(known)
    asked = name[:_SHOWN].lower()
    words = [word for word in _WORDS.split(asked) if len(word) >= _LEAST_WORD]
    close = close_names(asked, names, _NEAR)
    sharing = [one for one in names if any(word in one for word in words)]
    parts = {part for one in names for part in one.split("_")}
    alike = [part for word in words for part in close_names(word, parts, 1)]
    similar = [one for one in names if any(part in one.split("_") for part in alike)]
    return list(dict.fromkeys((*close, *sharing, *similar)))[:_NEAR]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean a or b?", or what there is if nothing is near."""
    names = list(known)
    close = close_names(name, names)
    return did_you_mean(close) if close else f"allowed: {', '.join(names)}"
