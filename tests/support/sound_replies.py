"""What holds for every reply: both forms agree, it fits, numbers have a provenance, `next` ends it.

Used on replies to real results and to hostile ones alike.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import yaml
from mcp.types import CallToolResult, ResourceLink, TextContent

BYTES_PER_TOKEN = 3.5
CONCISE_TOKENS = 1_500
PAGE_TOKENS = 5_000

_GROUPS = {"measured", "computed", "estimated", "progress"}
"""Fields below which every number is of the kind that they name."""
_NAMES = {
    *("line", "column", "row", "index", "next_offset", "number", "rank", "parents", "round"),
    *("seed", "winner", "same_program_as", "attempt", "proposer_ideas"),
}
"""Numbers that identify something, or count what stands in the reply: nothing to doubt."""
_PATHS = re.compile(r"/(home|Users|root|tmp)/")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def sound(reply: CallToolResult, most_tokens: float = CONCISE_TOKENS) -> dict[str, Any]:
    """Return the facts of a reply after looking at everything that must hold for any."""
    text = text_of(reply)
    facts = cast(dict[str, Any], reply.structured_content)
    assert yaml.safe_load(text) == facts, text
    assert tokens(reply) <= most_tokens, text
    assert list(facts)[-1] == "next", list(facts)
    assert "status" in facts
    assert "\n" not in facts["next"]
    assert list(_unexplained(facts)) == []
    assert _CONTROLS.search(text) is None
    assert _PATHS.search(text) is None, text
    for line in text.splitlines():
        assert not line.startswith("next:") or line == text.splitlines()[-1]
    return facts


def text_of(reply: CallToolResult) -> str:
    """Return the text of a reply, which is its first block."""
    first = reply.content[0]
    assert isinstance(first, TextContent)
    return first.text


def links_of(reply: CallToolResult) -> list[str]:
    """Return the addresses that a reply links to."""
    return [block.uri for block in reply.content if isinstance(block, ResourceLink)]


def tokens(reply: CallToolResult) -> float:
    """Return what the larger form of a reply costs, links included."""
    links = " ".join(links_of(reply))
    compact = json.dumps(reply.structured_content, separators=(",", ":"), ensure_ascii=False)
    sizes = [len(text.encode()) for text in (text_of(reply), compact)]
    return (max(sizes) + len(links)) / BYTES_PER_TOKEN


def _unexplained(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield where a number stands that does not say how it came to be."""
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        if "provenance" in fields:
            return
        for key, each in fields.items():
            if key not in _GROUPS and key not in _NAMES:
                yield from _unexplained(each, (*path, key))
    elif isinstance(value, list):
        for each in cast(Sequence[Any], value):
            yield from _unexplained(each, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{'.'.join(path)} = {value}"
