"""`search_documents`: what the documents that kopt has say about a query, within a token budget.

Synchronous, without a network, a model or a GPU. The first search builds the index.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import get_args

from kopt.config.errors import ToolError
from kopt.config.settings import Settings

from .answer import MOST_FURTHER, Wanted, quoted_hits
from .chunk_sources import DTYPES, KNOWN_ARCHS
from .code_tokens import arch_tag, exact_term, query_names, query_terms
from .corpus import SOURCES
from .hidden_sources import refuse_hidden, without_hidden
from .index import Index, with_index
from .lexicon import expansions
from .ranking import Filters, Ranked, Sought, ranked
from .records import Chunk, DocumentText, Kind, SearchRequest, SearchResult, UnknownWord

MOST_HITS = 50
LEAST_TOKENS, MOST_TOKENS = 100, 50_000
MOST_CHARACTERS = 16_384
MOST_TERMS = 64
_NEAREST = 3
_MOST_UNKNOWN = 5


def search_documents(request: SearchRequest, settings: Settings) -> SearchResult:
    """Return what the documents say about `request.query`, best first.

    Raises:
        ToolError: The query has no word to search for or is too long, a filter or a number is not
            among what is allowed, which the message lists, or the source is hidden.
    """
    started = time.perf_counter()
    request = without_hidden(request, settings)
    query = _query(request)
    filters = _filters(request)

    def answer(index: Index) -> SearchResult:
        return _answer(index, request, query, filters)

    result = with_index(settings, answer)
    elapsed_ms = round((time.perf_counter() - started) * 1e3, 2)
    return result.model_copy(update={"elapsed_ms": elapsed_ms})


def read_document(uid: str, settings: Settings) -> DocumentText:
    """Return the whole document of a hit.

    Raises:
        ToolError: No document has this uid, the message has near ones; or its source is hidden.
    """
    refuse_hidden(uid.partition(":")[0], settings)

    def answer(index: Index) -> DocumentText:
        row = index.connection.execute("select record from chunk where uid = ?", (uid,)).fetchone()
        if row is None:
            rows = index.connection.execute("select uid, source from chunk")
            known = [name for name, source in rows if source not in settings.without_sources]
            near = get_close_matches(uid[:200], known, n=_NEAREST)
            hint = f"did you mean {', '.join(near)}?" if near else "uids are those of search hits"
            raise ToolError(f"no document has the uid {uid[:200]!r}; {hint}")
        chunk = _chunk(row[0])
        return DocumentText(uid=uid, location=f"{chunk.path}:{chunk.start_line}", document=chunk)

    return with_index(settings, answer)


def _query(request: SearchRequest) -> str:
    """Return the query as text that can be stored and shown, once it is known to be one."""
    query = request.query.encode("utf-8", errors="replace").decode()
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


def _filters(request: SearchRequest) -> Filters:
    for name, value, least, most in (
        ("k", request.k, 1, MOST_HITS),
        ("max_tokens", request.max_tokens, LEAST_TOKENS, MOST_TOKENS),
    ):
        if not least <= value <= most:
            raise ToolError(f"{name} is {value}; it must be {least} to {most:,}")
    for source in (*request.without, *([request.source] if request.source else [])):
        _known("source", source, SOURCES)
    if request.kind:
        _known("kind", request.kind, get_args(Kind))
    if request.dtype:
        _known("dtype", request.dtype, tuple(DTYPES))
    arch = arch_tag(request.arch) if request.arch else None
    if request.arch and arch not in KNOWN_ARCHS:
        _known("arch", request.arch, [name.replace("sm", "sm_") for name in KNOWN_ARCHS])
    chosen = [request.source] if request.source else list(SOURCES)
    return Filters(
        sources=tuple(source for source in chosen if source not in request.without),
        kind=request.kind,
        arch=arch,
        dtype=request.dtype,
    )


def _known(name: str, value: str, known: Sequence[str] | dict[str, str]) -> None:
    if value not in known:
        raise ToolError(f"{name} {value[:60]!r} is unknown; known: {', '.join(known)}")


def _answer(index: Index, request: SearchRequest, query: str, filters: Filters) -> SearchResult:
    names = [name for name in query_names(query)[:MOST_TERMS] if query_terms(name)]
    absent = [name for name in names if not _is_known(index.connection, name)]
    phrases = expansions(query)
    sought = _sought(query, names, absent, list(phrases))
    found = ranked(index.connection, sought, filters, request.k + MOST_FURTHER)
    words = {name: frozenset(query_terms(name)) for name in names}
    words |= {text: frozenset([phrase]) for phrase, text in phrases.items() if " " not in phrase}
    wanted = Wanted(request.k, request.max_tokens, words)
    quoted = quoted_hits(_chunks(index.connection, found.best), found.matches, wanted)
    unfiltered = Filters(tuple(source for source in SOURCES if source not in request.without))
    advice = None
    if not found.matches and filters != unfiltered:
        others = ranked(index.connection, sought, unfiltered, 0).matches
        advice = f"without the filters {others} documents match" if others else None
    return SearchResult(
        query=query,
        degraded=index.degraded,
        elapsed_ms=0.0,
        sources=_versions(index, filters),
        hits=quoted.hits,
        further=quoted.further,
        left_out=quoted.left_out,
        unknown_words=tuple(
            UnknownWord(word=name[:60], nearest=_nearest(index.connection, name))
            for name in [name for name in absent if not expansions(name)][:_MOST_UNKNOWN]
        ),
        advice=advice,
        tokens=quoted.tokens,
        max_tokens=request.max_tokens,
    )


def _chunks(
    connection: sqlite3.Connection, found: Sequence[Ranked]
) -> Iterator[tuple[Chunk, float]]:
    for one in found:
        (record,) = connection.execute(
            "select record from chunk where id = ?", (one.chunk_id,)
        ).fetchone()
        yield _chunk(record), one.score


def _chunk(record: str) -> Chunk:
    return Chunk.model_validate(json.loads(record))


def _versions(index: Index, filters: Filters) -> dict[str, str | None]:
    """Return the searched sources that hold something, with their versions."""
    versions = {file.source: file.version for file in reversed(index.corpus.files)}
    return {source: versions[source] for source in filters.sources if source in versions}


def _sought(query: str, names: list[str], absent: list[str], phrases: list[str]) -> Sought:
    """Return what to look for; what an absent name stands for takes its place, at full weight."""
    stand_ins = [phrase for name in absent for phrase in expansions(name)]
    exact = [term for name in names if (term := exact_term(name))]
    return Sought(
        text=query,
        terms=[*query_terms(query)[:MOST_TERMS], *stand_ins],
        names=[*exact, *stand_ins] if exact else [],
        phrases=phrases,
    )


def _is_known(connection: sqlite3.Connection, name: str) -> bool:
    """Say whether any document has this word, or this very name."""
    exact = exact_term(name)
    terms = [exact] if exact else query_terms(name)
    match = " OR ".join(f'"{term}"' for term in terms)
    found = connection.execute("select 1 from fts where fts match ? limit 1", (match,))
    return found.fetchone() is not None


def _nearest(connection: sqlite3.Connection, name: str) -> tuple[str, ...]:
    word = name.lower()[:60]
    rows = connection.execute(
        "select word from word where substr(word, 1, 1) = ? and length(word) between ? and ?",
        (word[:1], len(word) - 3, len(word) + 3),
    )
    return tuple(get_close_matches(word, [row[0] for row in rows], n=_NEAREST))
