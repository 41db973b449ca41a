"""Chunks as hits within a token budget: the first get the most room, the rest one line each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kopt.tools.docs.records import Chunk, FurtherHit, Hit
from kopt.tools.docs.visible_text import estimated_tokens, shown
from kopt.tools.docs.words.code_tokens import terms_in
from kopt.tools.docs.words.glossary import gloss_of

from .excerpts import excerpt

FIRST_SHARE = 0.4
"""Share of the budget that is left, for the next hit at least, however many come after it."""
WHOLE_SHARE = 0.6
"""Share of the budget that is left, for a hit that is whole then: a complete function is worth more
than two halves."""
LEAST_EXCERPT_TOKENS = 50
MOST_FURTHER = 3
_HEADING_TOKENS = 12
"""Cost of licence and marks around a title and a location."""


@dataclass(frozen=True)
class QuoteLimits:
    """What hits are made for."""

    k: int
    max_tokens: int
    words: Mapping[str, frozenset[str]]
    """What may have matched, as it is shown, with the index terms that say so: any one of them."""


@dataclass(frozen=True)
class QuotedHits:
    """The part of an answer that the budget counts."""

    hits: tuple[Hit, ...]
    further: tuple[FurtherHit, ...]
    left_out: int
    tokens: int


def quoted_hits(
    found: Iterable[tuple[Chunk, float]], matches: int, wanted: QuoteLimits
) -> QuotedHits:
    """Return the best of `found` as hits and the next as further hits, within the budget.

    `found` has chunks with their scores, best first, and is read only as far as needed; there are
    `matches` in all.
    """
    hits: list[Hit] = []
    further: list[FurtherHit] = []
    left = wanted.max_tokens
    for chunk, score in found:
        places = wanted.k - len(hits)
        room = _room(chunk, left, places) - _heading_tokens(chunk)
        if not further and room >= LEAST_EXCERPT_TOKENS:
            hit = _hit(chunk, score, room, wanted)
            hits.append(hit)
            left -= hit.tokens
            continue
        line = FurtherHit(
            uid=one_line(chunk.uid),
            title=one_line(chunk.title),
            location=f"{one_line(chunk.path)}:{chunk.start_line}",
        )
        cost = estimated_tokens(f"{line.uid} {line.title} {line.location}")
        if len(further) == MOST_FURTHER or cost > left:
            break
        further.append(line)
        left -= cost
    return QuotedHits(
        hits=tuple(hits),
        further=tuple(further),
        left_out=matches - len(hits) - len(further),
        tokens=wanted.max_tokens - left,
    )


def _room(chunk: Chunk, left: int, places: int) -> int:
    """Return how much of the `left` tokens the next hit may take, with `places` to fill."""
    if places <= 0:
        return 0
    heading = _heading_tokens(chunk)
    whole = estimated_tokens(chunk.body) + heading
    share = int(left * max(1 / places, FIRST_SHARE))
    least = heading + LEAST_EXCERPT_TOKENS
    return min(left, max(least, whole if whole <= left * WHOLE_SHARE else share))


def one_line(text: str) -> str:
    """Return `text` as one harmless line."""
    return shown(" ".join(text.split()))


def _hit(chunk: Chunk, score: float, room: int, wanted: QuoteLimits) -> Hit:
    names = (chunk.symbol or "", chunk.title, chunk.path, gloss_of(chunk))
    texts = (*names, chunk.comment, *chunk.tags, chunk.body)
    looked_for = frozenset[str]().union(*wanted.words.values())
    own = terms_in(" ".join(texts), looked_for)
    matched = [word for word, terms in wanted.words.items() if terms & own]
    part = excerpt(chunk.body, looked_for, room)
    line = chunk.start_line + (0 if chunk.derived else part.first_line)
    path = one_line(chunk.path)
    return Hit(
        uid=one_line(chunk.uid),
        title=one_line(chunk.title),
        source=chunk.source,
        version=chunk.version,
        license=chunk.license,
        path=path,
        location=f"{path}:{line}",
        symbol=None if chunk.symbol is None else one_line(chunk.symbol),
        kind=chunk.kind,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        tags=tuple(one_line(tag) for tag in chunk.tags),
        arch=chunk.arch,
        dtype=chunk.dtype,
        also_at=tuple(one_line(_with_source(place, chunk)) for place in chunk.also_at),
        score=score,
        matched=tuple(matched),
        text=part.text,
        left_out_lines=part.left_out_lines,
        tokens=estimated_tokens(part.text) + _heading_tokens(chunk),
    )


def _with_source(place: str, chunk: Chunk) -> str:
    """Return `source:path:line`; a chunk has `path:line` of copies in its own source."""
    return place if place.count(":") > 1 else f"{chunk.source}:{place}"


def _heading_tokens(chunk: Chunk) -> int:
    return estimated_tokens(f"{chunk.uid} {chunk.title} {chunk.path}") + _HEADING_TOKENS
