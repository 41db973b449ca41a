"""A found document as facts, and as the words that a terminal and a model show alike."""

from collections.abc import Sequence

from kopt.tools.docs.records import Chunk, Hit
from kopt.tools.docs.visible_text import shown

from .fitting import Facts
from .wording import QuotedLines

MOST_WORDS = 6
"""How many of the matched words are named."""


def hit_facts(hit: Hit) -> Facts:
    """Return where a hit is from, why it is here, and its text as a block."""
    return {
        "location": place_words(hit),
        "origin": shown(origin_words(hit)),
        "matched": ", ".join(hit.matched[:MOST_WORDS]),
        "text": QuotedLines(hit.text),
    }


def place_words(document: Hit | Chunk) -> str:
    """Return `source:path:symbol L12-L40`, all that is needed to find it in its project."""
    symbol = f":{document.symbol}" if document.symbol else ""
    lines = f"L{document.start_line}"
    if document.end_line > document.start_line:
        lines += f"-L{document.end_line}"
    return f"{document.source}:{document.path}{symbol} {lines}"


def origin_words(document: Hit | Chunk) -> str:
    """Return kind, version and licence: `kernel, 0.6.13, Apache-2.0`."""
    parts = (document.kind, document.version, document.license or "no licence known")
    return ", ".join(part for part in (*parts, _since(document.arch)) if part)


def rest_words(hit: Hit) -> str:
    """Return `lines 40-52 are shown, 30 more`, of a hit that was cut."""
    first = int(hit.location.rpartition(":")[2])
    last = first + hit.text.count("\n")
    return f"lines {first}-{last} are shown, {hit.left_out_lines:,} more"


def _since(arch: Sequence[str]) -> str:
    if not arch:
        return ""
    return f"{arch[0]} on" if len(arch) > 1 else f"{arch[0]} only"
