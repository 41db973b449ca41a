"""`search_documents`: what kopt's documents and production code say about a query.

Asked are the indexes of this machine, and Pinecone where there is a key.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from kopt.config.errors import ToolError
from kopt.config.near_matches import close_names, did_you_mean
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.own.whole_files import whole_file, whole_names
from kopt.tools.docs.pinecone_index.asking import RemoteHits
from kopt.tools.docs.records import (
    DocumentText,
    SearchRequest,
    SearchResult,
    UnknownWord,
)
from kopt.tools.docs.sources import SOURCES
from kopt.tools.docs.vectors import NO_MODEL, WHAT_THE_EXTRA_ADDS, model_name, vector_model
from kopt.tools.docs.words.tags import subjects_of

from .candidates import PageCandidate
from .hidden_sources import refuse_hidden, without_hidden, without_places
from .indexes import OpenIndexes, with_indexes
from .manual_hits import manual_pages, with_manual
from .query_words import NEAREST, QueryWords, nearest_words, query_words, unknown_words
from .quoting import MOST_FURTHER, QuotedHits, quoted_hits
from .ranking import ranked
from .request import (
    check_left_out,
    checked_query,
    filters_of,
    plain_text,
)

OFFER = (
    "kopt docs build adds the production kernels of FlashInfer, vLLM, SGLang, CUTLASS and PyTorch:"
    " a download of 74 MB, then about 90 s on two cores"
)
OTHER_WORDS = "other words may find it: names as code spells them, or the name of a technique"


def search_documents(request: SearchRequest, settings: Settings) -> SearchResult:
    """Return what there is about `request.query`, best first.

    Raises:
        ToolError: The query has no word to search for or is too long, a filter or a number is not
            among what is allowed, which the message lists, or the source is hidden.
    """
    started = time.perf_counter()
    request = without_hidden(request, settings)
    result = with_indexes(settings, lambda there: _answer(request, there, settings))
    elapsed_ms = round((time.perf_counter() - started) * 1e3, 2)
    return result.model_copy(update={"elapsed_ms": elapsed_ms})


def read_document(uid: str, settings: Settings) -> DocumentText:
    """Return the whole document of a hit; of a piece of a long function, the function.

    A path of kopt's own files without a line, such as `docs/problems.md`, is the whole file.

    Raises:
        ToolError: No document has this uid, the message has near ones; or its source is hidden, or
            a source that is to be hidden is unknown.
    """
    uid = plain_text(uid)
    refuse_hidden(uid.partition(":")[0], settings)
    file = whole_file(uid, settings)
    if file is not None:
        refuse_hidden(file.source, settings)
        return DocumentText(uid=f"{file.source}:{file.path}", location=file.path, document=file)

    def answer(there: OpenIndexes) -> DocumentText:
        check_left_out(settings.without_sources, there.built)
        for one in there.both:
            first = one.first_of(uid)
            if first is not None:
                chunk = without_places(one.whole(first), settings.without_sources)
                place = f"{chunk.path}:{chunk.start_line}"
                return DocumentText(uid=chunk.uid, location=place, document=chunk)
        near = close_names(uid, whole_names(settings), NEAREST) if "#" not in uid else ()
        near = near or _near_uids(uid, there, settings)
        where = "uids are those of search hits (kopt docs search TEXT)"
        hint = did_you_mean(near) if near else where
        raise ToolError(f"no document has the uid {uid[:200]!r}; {hint}")

    return with_indexes(settings, answer)


def _near_uids(uid: str, there: OpenIndexes, settings: Settings) -> tuple[str, ...]:
    """Return uids that look like `uid`: of kopt's own all, of the library's those of that file."""
    file = uid.rpartition("#")[0].rpartition("/")[2]
    known = there.own.collection.uids()
    if there.library and file:
        known += there.library.uids(f"/{file}#")
    seen = [one for one in known if one.partition(":")[0] not in settings.without_sources]
    return close_names(uid, seen, NEAREST)


def _answer(request: SearchRequest, there: OpenIndexes, settings: Settings) -> SearchResult:
    filters = filters_of(request, there.built)  # before the query: they are those of a batch
    query = checked_query(request)
    collections = there.collections(filters)
    remote = RemoteHits(query, filters, there.built)
    if request.backend == "auto" and there.library in collections:
        remote.ask(settings)
    sought = _sought(query, collections, there)
    most = request.k * request.page + MOST_FURTHER
    matches, best = ranked(collections, sought, filters, most, remote.uids)
    if there.own.collection in collections:
        pages = manual_pages(there.own.collection, sought, filters)
        best = with_manual(best, pages, sought)
    quoted, end = _page(best, request, sought)
    # A word to suggest may be one of what is left out.
    unknown = unknown_words(sought, [] if filters.without else collections)
    advice: str | None = None
    if not (quoted.hits or quoted.further):
        beyond = f"page {request.page} is beyond the last; ask for page 1"
        advice = beyond if matches else _advice(filters, there, sought, unknown)
    is_offered = there.library is None and there.said is None and filters.sources is None
    return SearchResult(
        query=query,
        backend="embedded+pinecone" if remote.has_answered else "embedded",
        degraded=_degraded(there, collections, remote),
        elapsed_ms=0.0,
        sources=_versions(there, filters),
        hits=quoted.hits,
        further=quoted.further,
        left_out=matches - end - len(quoted.further),
        page=request.page,
        next_page=request.page + 1 if quoted.hits and end < matches else None,
        unknown_words=unknown,
        offer=OFFER if is_offered else None,
        advice=advice,
        tokens=quoted.tokens,
        max_tokens=request.max_tokens,
    )


def _sought(query: str, collections: Sequence[Collection], there: OpenIndexes) -> QueryWords:
    words = query_words(query, collections)
    if there.library is None:
        return words
    model = vector_model() if _has_vectors(there.library) else None
    return replace(words, tags=subjects_of(query), vector=model.query(query) if model else None)


def _has_vectors(library: Collection) -> bool:
    return library.cache.meta.model == model_name() != NO_MODEL


def _page(
    best: Sequence[PageCandidate], request: SearchRequest, sought: QueryWords
) -> tuple[QuotedHits, int]:
    """Return the page that is asked for, and where its hits end in `best`.

    Each page begins after the last hit of the one before.
    """
    quoted = QuotedHits((), (), 0)
    end = 0
    for _number in range(request.page):
        chunks = (
            (without_places(one.collection.whole(one.place[1]), request.without), one.score)
            for one in best[end:]
        )
        quoted = quoted_hits(chunks, request, sought.known)
        end += len(quoted.hits)
    return quoted, end


def _degraded(
    there: OpenIndexes, collections: Sequence[Collection], remote: RemoteHits
) -> str | None:
    reasons = [there.own.degraded, there.said, remote.failure]
    if there.library in collections and not (
        there.library and _has_vectors(there.library) and vector_model()
    ):
        reasons.append(WHAT_THE_EXTRA_ADDS)
    return "; ".join(reason for reason in reasons if reason) or None


def _advice(
    filters: Filters, there: OpenIndexes, sought: QueryWords, unknown: Sequence[UnknownWord]
) -> str | None:
    """Return what to try where nothing was found."""
    said = [_near_symbols(filters, there)]
    unfiltered = Filters(without=filters.without)
    if filters != unfiltered:
        others, _best = ranked(there.collections(unfiltered), sought, unfiltered, 0)
        said += [f"without the filters {others} documents match"] if others else []
    if not any(said) and not any(one.nearest for one in unknown):
        said = [OTHER_WORDS]
    return "; ".join(filter(None, said)) or None


def _near_symbols(filters: Filters, there: OpenIndexes) -> str | None:
    """Say that nothing defines the symbol that is asked for, with near ones; None if it is there.

    Nothing is said where sources are left out: what is near may be theirs.
    """
    symbol = filters.symbol
    if symbol is None or filters.without or there.defines(symbol):
        return None
    near = [word for word in nearest_words(symbol, there.both) if there.defines(word)]
    named = f"; near: {', '.join(near)}" if near else ""
    return f"nothing defines {symbol[:60]!r}{named}"


def _versions(there: OpenIndexes, filters: Filters) -> dict[str, str | None]:
    """Return the searched sources that hold something, with their versions."""
    versions = {file.source: file.version for file in reversed(there.own.corpus.files)}
    own = {source: versions[source] for source in SOURCES if source in versions}
    library = there.library.cache.meta.sources if there.library else ()
    found = own | {one.source: one.version for one in library}
    return {source: version for source, version in found.items() if filters.admits(source)}
