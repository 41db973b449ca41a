"""Cutting facts to a size that a model can bear, and saying what was left out.

Facts are nested dicts in which `Listing` marks what may be shown in part. A concise reply shows the
beginning of each; the pages of a full one go through all of them in order.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, cast

from .rendering import render
from .wording import Quoted, QuotedLines, clipped, lines, lines_beginning, plain_beginning

Detail = Literal["concise", "full"]
Facts = dict[str, Any]

BYTES_PER_TOKEN = 3.5  # of UTF-8, so that signs which cost a token each are not taken for letters
CONCISE_TOKENS = 1_400  # of 1,500: links and what clients add come on top
PAGE_TOKENS = 4_000
_LEAST_STRING = 80


@dataclass(frozen=True)
class Listing:
    """Facts of one kind, most important first."""

    items: tuple[Any, ...]
    most: int = 5
    """How many a concise reply shows at most."""


def given(**facts: Any) -> Facts:
    """Return those of `facts` that have a value: neither None nor empty."""
    return {name: value for name, value in facts.items() if not _is_nothing(value)}


def _is_nothing(value: Any) -> bool:
    if isinstance(value, Listing):
        return not value.items
    return value is None or (isinstance(value, str | tuple | list | dict) and not value)


@dataclass(frozen=True)
class _Limits:
    """The longest strings, in characters."""

    sentence: int
    block_lines: int
    block_width: int


@dataclass
class _Cut:
    """Facts with only a part of each listing."""

    shown: list[range]
    """The places that are shown of each listing, in the order of the listings."""
    totals: list[int] = field(default_factory=list[int])
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    def apply(self, facts: Facts) -> Facts:
        """Return the facts with these parts, and what is missing in `left_out`."""
        return {name: self._part(value, name) for name, value in facts.items()}

    def _part(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return self.apply(cast(Facts, value))
        if not isinstance(value, Listing):
            return value
        total = len(value.items)
        shown = self.shown[len(self.totals)]
        self.totals.append(total)
        if len(shown) < total:
            self.left_out[name] = f"{total - len(shown):,} of {total:,}"
        return list(value.items[shown.start : shown.stop])


_CONCISE = _Limits(sentence=400, block_lines=3, block_width=140)
_FULL = _Limits(sentence=1_000, block_lines=10, block_width=160)


def fitted(facts: Facts, rest: str) -> Facts:
    """Return the beginning of each listing, so that all of it is at most `CONCISE_TOKENS`.

    `rest` says where what is left out can be had; it is said only if something is.
    """
    facts = _tamed(facts, _CONCISE)
    listings = list(_listings(facts))
    shown = [range(min(one.most, len(one.items))) for one in listings]
    while True:
        result = _with_rest(facts, shown, rest)
        if tokens(result) <= CONCISE_TOKENS:
            return result
        longest = max(
            (n for n, part in enumerate(shown) if len(part) > 1),
            key=lambda n: len(_compact(listings[n].items[: len(shown[n])])),
            default=None,
        )
        if longest is None:
            return _clipped_to_fit(result)
        shown[longest] = shown[longest][:-1]


def page(facts: Facts, offset: int) -> tuple[Facts, int | None]:
    """Return the facts with the items from `offset` on that fit a page, and the next offset.

    Items are counted through all listings in their order; None: this was the last page.
    """
    facts = _tamed(facts, _FULL)
    listings = list(_listings(facts))
    total = sum(len(one.items) for one in listings)
    stop = min(offset, total)
    room = PAGE_TOKENS * BYTES_PER_TOKEN
    room -= _size(_compact(_Cut([range(0)] * len(listings)).apply(facts)))
    for item in [item for one in listings for item in one.items][stop:]:
        room -= _size(_compact(item)) + 8  # the indentation of its text
        if room < 0 and stop > offset:
            break
        stop += 1
    shown: list[range] = []
    before = 0
    for one in listings:
        places = range(len(one.items))
        shown.append(places[max(0, offset - before) : max(0, stop - before)])
        before += len(one.items)
    return _Cut(shown).apply(facts), stop if stop < total else None


def line_pages(text: str, most_tokens: int) -> list[str]:
    """Return `text` cut between lines into pages of at most so many tokens, at least one."""
    pages: list[list[str]] = [[]]
    room = most_tokens * BYTES_PER_TOKEN
    for line in text.split("\n"):
        room -= _size(line) + 4  # a block in YAML and its line's end in JSON
        if room < 0 and pages[-1]:
            pages.append([])
            room = most_tokens * BYTES_PER_TOKEN - _size(line) - 4
        pages[-1].append(line)
    return ["\n".join(page) for page in pages]


def tokens(facts: Facts) -> float:
    """Return an estimate of what `facts` cost a model, as text or as JSON, the larger one."""
    return max(_size(render(facts)), _size(_compact(facts))) / BYTES_PER_TOKEN


def cleaned(value: Any) -> Any:
    """Return `value` with its strings tamed, their lines and their length kept."""
    return _mapped(value, lambda text: type(text)(lines(text)))


def _with_rest(facts: Facts, shown: list[range], rest: str) -> Facts:
    cut = _Cut(list(shown))
    result = cut.apply(facts)
    if cut.left_out:
        result |= {"left_out": cut.left_out, "rest": rest}
    return result


def _listings(value: Any) -> Iterator[Listing]:
    if isinstance(value, Listing):
        yield value
    elif isinstance(value, dict):
        for each in cast(Facts, value).values():
            yield from _listings(each)


def _tamed(facts: Facts, limits: _Limits) -> Facts:
    def tame(text: str) -> str:
        if isinstance(text, QuotedLines):
            return QuotedLines(lines_beginning(text, limits.block_lines, limits.block_width))
        return type(text)(plain_beginning(text, limits.sentence))

    result: Facts = _mapped(facts, tame)
    return result


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return `value` with every string changed and every number fit for JSON."""
    match value:
        case str():
            # A str of an enum is one by inheritance only.
            return change(value if isinstance(value, Quoted | QuotedLines) else str(value))
        case dict():
            fields = cast(Facts, value)
            return {key: _mapped(each, change) for key, each in fields.items()}
        case list() | tuple():
            return [_mapped(each, change) for each in cast(list[Any], value)]
        case Listing():
            return Listing(tuple(_mapped(each, change) for each in value.items), value.most)
        case float():
            return float(f"{value:.4g}") if isfinite(value) else str(value)
        case _:
            return value


def _clipped_to_fit(facts: Facts) -> Facts:
    """Return `facts` with its longest strings halved until all fits."""
    while tokens(facts) > CONCISE_TOKENS:
        longest = max((len(text) for text in _strings(facts)), default=0)
        if longest <= _LEAST_STRING:
            return facts
        limit = max(_LEAST_STRING, longest // 2)

        def shorten(text: str, limit: int = limit) -> str:
            return type(text)(clipped(text, limit)) if len(text) > limit else text

        facts = _mapped(facts, shorten)
    return facts


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in cast(Facts, value).values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in cast(Sequence[Any], value):
            yield from _strings(each)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
