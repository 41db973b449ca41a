"""A request as it may be answered: its text and its numbers, checked."""

from collections.abc import Iterable, Sequence
from typing import get_args

from kopt.config.errors import ToolError
from kopt.tools.docs.indexing.entries import symbol_name
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.library.pins import known_libraries
from kopt.tools.docs.records import Kind, SearchRequest
from kopt.tools.docs.sources import SOURCES
from kopt.tools.docs.words.code_tokens import arch_tag, query_terms
from kopt.tools.docs.words.tags import known_archs, known_dtypes

MOST_HITS = 50
MOST_PAGES = 100
LEAST_TOKENS, MOST_TOKENS = 100, 500_000
MOST_CHARACTERS = 16_384


def checked_query(request: SearchRequest) -> str:
    """Return the query as text that can be stored and shown; a symbol may stand for it.

    Raises:
        ToolError: It has no word to search for or is too long, or a number of the request is not
            among what is allowed, which the message says.
    """
    for name, value, least, most in (
        ("k", request.k, 1, MOST_HITS),
        ("page", request.page, 1, MOST_PAGES),
        ("max_tokens", request.max_tokens, LEAST_TOKENS, MOST_TOKENS),
    ):
        if not least <= value <= most:
            raise ToolError(f"{name} is {value}; it must be {least} to {most:,}")
    asked = request.query.strip() or request.symbol or ""
    query = plain_text(asked)
    if len(query) > MOST_CHARACTERS:
        raise ToolError(
            f"the query has {len(query):,} characters; at most {MOST_CHARACTERS:,} are read:"
            " ask in a few words or with a name"
        )
    if not query_terms(query):
        raise ToolError(
            f"the query {query[:80]!r} has no word to search for: name a technique, an"
            " instruction, a type or a status, e.g. 'cp.async pipeline'"
        )
    return query


def plain_text(text: str) -> str:
    """Return `text` without what UTF-8 has no bytes for, which a terminal can hand over."""
    return text.encode("utf-8", errors="replace").decode()


_ALIASES = {"manual": "docs"}
"""What sources are called besides their keys."""


def filters_of(request: SearchRequest, built: Iterable[str]) -> Filters:
    """Return the filters of a request, where the library index has the sources `built`.

    Raises:
        ToolError: A value is unknown, or of a library that is not in the index; the message lists
            what is known, or says how to build it.
    """
    names = [_ALIASES.get(name.strip(), name.strip()) for name in (request.source or "").split(",")]
    chosen = tuple(dict.fromkeys(name for name in names if name))
    present = [*SOURCES, *built]
    for source in chosen:
        if source in known_libraries() and source not in present:
            raise ToolError(f"source {source!r} is not in the index; {how_to_build(source)}")
        _known("source", source, present)
    check_left_out([_ALIASES.get(one, one) for one in request.without], built)
    if request.kind:
        _known("kind", request.kind, get_args(Kind))
    if request.dtype:
        _known("dtype", request.dtype, known_dtypes())
    arch = arch_tag(request.arch) if request.arch else None
    if request.arch and arch not in known_archs():
        _known("arch", request.arch, [name.replace("sm", "sm_") for name in known_archs()])
    return Filters(
        sources=chosen or None,
        without=tuple(sorted({_ALIASES.get(one, one) for one in request.without})),
        kind=request.kind,
        arch=arch,
        dtype=request.dtype,
        symbol=symbol_name(plain_text(request.symbol)) if request.symbol else None,
    )


def check_left_out(sources: Iterable[str], built: Iterable[str]) -> None:
    """See that `sources`, which are to be left out, can be: a misspelled one would not be.

    Raises:
        ToolError: One is unknown; the message lists what is known.
    """
    for source in sources:
        _known("source", source, [*SOURCES, *dict.fromkeys((*known_libraries(), *built))])


def how_to_build(source: str) -> str:
    """Return the command that adds a known library to the index, with what it is."""
    return f"kopt docs build --source {source} adds it: {known_libraries()[source].holds}"


def _known(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ToolError(f"{name} {value[:60]!r} is unknown; known: {', '.join(known)}")
