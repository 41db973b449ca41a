"""The part of a document that is quoted: all of it if it fits, else the lines around the match."""

from collections.abc import Collection
from dataclasses import dataclass

from kopt.tools.docs.visible_text import BYTES_PER_TOKEN, estimated_tokens, shown
from kopt.tools.docs.words.code_tokens import terms_in

_CUT = " …"


@dataclass(frozen=True)
class Excerpt:
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
