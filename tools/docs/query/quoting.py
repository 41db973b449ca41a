"""Chunks as hits within a token budget: the first get the most room, the rest one line each."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kopt.tools.docs.records import Chunk, FurtherHit, Hit, SearchRequest
from kopt.tools.docs.visible_text import BYTES_PER_TOKEN, estimated_tokens, shown
from kopt.tools.docs.words.code_tokens import terms_in
from kopt.tools.docs.words.glossary import gloss_of

FIRST_SHARE = 0.4
"""Share of the budget that is left, for the next hit at least, however many come after it."""
WHOLE_SHARE = 0.6
"""Share of the budget that is left, for a hit that is whole then: a complete function is worth more
than two halves."""
LEAST_EXCERPT_TOKENS = 50
MOST_FURTHER = 3
_HEADING_TOKENS = 12
"""Cost of licence and marks around a title and a location."""
Words = Mapping[str, frozenset[str]]
"""What may have matched, as it is shown, with the index terms that say so: any one of them."""
_AS_IT_IS = ("source", "version", "license", "kind", "start_line", "end_line", "arch", "dtype")
"""Fields that a hit has of its chunk unchanged; text in the others is made harmless."""


class QuotedHits(NamedTuple):
    """The part of an answer that the budget counts."""

    hits: tuple[Hit, ...]
    further: tuple[FurtherHit, ...]
    tokens: int


def quoted_hits(
    found: Iterable[tuple[Chunk, float]], request: SearchRequest, words: Words
) -> QuotedHits:
    """Return the best of `found` as hits and the next as further hits, within the budget.

    `found` has chunks with their scores, best first, and is read only as far as needed.
    """
    hits: list[Hit] = []
    further: list[FurtherHit] = []
    left = request.max_tokens
    for chunk, score in found:
        room = _room(chunk, left, request.k - len(hits)) - _heading_tokens(chunk)
        if not further and room >= LEAST_EXCERPT_TOKENS:
            hit = _hit(chunk, score, room, words)
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
    return QuotedHits(tuple(hits), tuple(further), request.max_tokens - left)


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


def _hit(chunk: Chunk, score: float, room: int, words: Words) -> Hit:
    names = (chunk.symbol or "", chunk.title, chunk.path, gloss_of(chunk))
    texts = (*names, chunk.comment, *chunk.tags, chunk.body)
    looked_for = frozenset[str]().union(*words.values())
    own = terms_in(" ".join(texts), looked_for)
    matched = [word for word, terms in words.items() if terms & own]
    part = excerpt(chunk.body, looked_for, room)
    line = chunk.start_line + (0 if chunk.derived else part.first_line)
    path = one_line(chunk.path)
    return Hit(
        **{name: getattr(chunk, name) for name in _AS_IT_IS},
        uid=one_line(chunk.uid),
        title=one_line(chunk.title),
        path=path,
        location=f"{path}:{line}",
        symbol=None if chunk.symbol is None else one_line(chunk.symbol),
        tags=tuple(one_line(tag) for tag in chunk.tags),
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


_CUT = " …"


class Excerpt(NamedTuple):
    """Lines of a document."""

    text: str
    first_line: int
    """Number of its first line, counted from 0 within the document."""
    left_out_lines: int


def excerpt(body: str, terms: Collection[str], most_tokens: int) -> Excerpt:
    """Return the lines of `body` that say most about `terms`, in at most `most_tokens`."""
    body = shown(body)
    lines = body.split("\n")
    if estimated_tokens(body) <= most_tokens:
        return Excerpt(body, 0, 0)
    costs = [estimated_tokens(f"{line}\n") for line in lines]
    worth = _line_worth(lines, frozenset(terms))
    first, last = _best_window(costs, worth, most_tokens)
    text = "\n".join(lines[first : last + 1])
    if first == last and costs[first] > most_tokens:
        text = _around(text, terms, most_tokens)
    return Excerpt(text, first, len(lines) - (last - first + 1))


def _line_worth(lines: list[str], terms: frozenset[str]) -> list[float]:
    """Return for each line how much of the query it has; rare terms count more."""
    found = [terms_in(line, terms) for line in lines]
    counts = {term: sum(term in line for line in found) for term in terms}
    return [sum(1.0 / counts[term] for term in line) for line in found]


def _best_window(costs: list[int], worth: list[float], budget: int) -> tuple[int, int]:
    """Return (first, last) of the lines within `budget` that are worth most, the earliest of equal.

    One line is returned in any case.
    """
    best: tuple[int, int] = (0, 0)
    best_worth = -1.0
    first, cost, total = 0, 0, 0.0
    for last in range(len(costs)):
        cost += costs[last]
        total += worth[last]
        while cost > budget and first < last:
            cost -= costs[first]
            total -= worth[first]
            first += 1
        if total > best_worth + 1e-9 or (last == best[1] + 1 and first == best[0]):
            best, best_worth = (first, last), max(total, best_worth)
    return best


def _around(line: str, terms: Collection[str], most_tokens: int) -> str:
    """Return the part of one overlong line around the first word that a term begins with."""
    length = max(1, most_tokens * BYTES_PER_TOKEN - 2 * len(_CUT.encode()))
    lowered = line.lower()
    places = [at for term in terms if (at := lowered.find(term)) >= 0]
    begin = max(0, min(places, default=0) - length // 4)
    part = line[begin : begin + length]
    while len(part.encode()) > length:
        part = part[:-1]
    return f"{_CUT.strip() + ' ' if begin else ''}{part}{_CUT}"
