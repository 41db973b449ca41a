"""What would be uploaded, without asking the service: `push_estimate` and the records."""

import hashlib
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.damage import IndexFailure
from kopt.tools.docs.indexing.index_meta import connected, library_index_path, meta_of
from kopt.tools.docs.library.pins import known_libraries
from kopt.tools.docs.library_index.assembly import all_chunks
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.sources import may_be_handed_on

from .push_records import (
    MOST_ID_BYTES,
    MOST_TOKENS,
    STARTER_PLAN_TOKENS,
    PushEstimate,
    PushRequest,
    RemoteRecord,
    batches,
    remote_record,
)
from .service import EMBEDDING_MODEL, MOST_RECORDS, TEXT_FIELD

LEAST_TOKENS = 60
"""Least limit on one record: half a card, which has 120 at the median."""


@dataclass
class PushPlan:
    """The documents of the library, by what becomes of them in one namespace."""

    namespace: str
    records: list[RemoteRecord] = field(default_factory=list[RemoteRecord])
    sources: Counter[str] = field(default_factory=Counter[str])
    """Numbers of these records, by source."""
    closed: Counter[str] = field(default_factory=Counter[str])
    """Documents of libraries that are wanted, whose own licence keeps them here."""
    others: set[str] = field(default_factory=set[str])
    """Sources that are not wanted."""
    left_out: int = 0
    """Records whose ids are too long for the service."""

    def kept_back(self) -> dict[str, str]:
        """Return the sources that are not sent, whole or in part, and why."""
        kept = {name: _why(name) for name in self.others}
        for name, count in self.closed.items():
            kept[name] = f"{count:,} documents whose licence forbids it or is not known"
        return dict(sorted(kept.items()))


def push_estimate(request: PushRequest, settings: Settings) -> PushEstimate:
    """Return what `push_library` would send and about what it costs. Needs no key and no network.

    Raises:
        SetupError: There is no sound library index, or none of it is sent unasked.
        ToolError: A source is not in it or may not be sent, or a number is out of range.
    """
    plan = planned(request, settings)
    sizes = [record.tokens for record in plan.records]
    fits = sum(sizes) <= STARTER_PLAN_TOKENS
    return PushEstimate(
        index=settings.pinecone_index_name,
        namespace=plan.namespace,
        cloud=request.cloud,
        region=request.region,
        model=EMBEDDING_MODEL,
        sources=dict(plan.sources),
        kept_back=plan.kept_back(),
        left_out=plan.left_out,
        records=len(plan.records),
        requests=sum(1 for _ in batches(plan.records, TEXT_FIELD, MOST_RECORDS["records"])),
        estimated_tokens=sum(sizes),
        fits_starter_plan=fits,
        most_tokens=request.most_tokens,
        most_tokens_that_fit=None if fits else _that_fit(sizes),
    )


def planned(request: PushRequest, settings: Settings) -> PushPlan:
    """Return the records of the library.

    Raises:
        SetupError: There is no sound library index, or none of it is sent unasked.
        ToolError: A source is not in it or may not be sent, or a number is out of range.
    """
    if not LEAST_TOKENS <= request.most_tokens <= MOST_TOKENS:
        raise ToolError(
            f"most_tokens is {request.most_tokens}; it must be {LEAST_TOKENS} to {MOST_TOKENS}"
        )
    namespace = namespace_of(settings)
    if namespace is None:
        raise SetupError("there is no library to upload: build it with `kopt docs build`")
    plan = PushPlan(namespace)
    try:
        for chunk in all_chunks(settings):
            _place(chunk, request, plan)
    except (sqlite3.Error, ValueError) as error:
        raise SetupError(
            f"the library index cannot be read ({error}): build it again with `kopt docs build`"
        ) from error
    _refuse_what_cannot_be_sent(request.sources, plan)
    return plan


def _place(chunk: Chunk, request: PushRequest, plan: PushPlan) -> None:
    """Put `chunk` where it belongs; without names a request means the known libraries."""
    if chunk.source not in (request.sources or known_libraries()):
        plan.others.add(chunk.source)
    elif chunk.source in known_libraries() and not is_public(chunk.source, chunk.license):
        plan.closed[chunk.source] += 1
    elif len((record := remote_record(chunk, request.most_tokens)).id) > MOST_ID_BYTES:
        plan.left_out += 1
    else:
        plan.sources[chunk.source] += 1
        plan.records.append(record)


def _refuse_what_cannot_be_sent(named: Sequence[str], found: PushPlan) -> None:
    """Raise what `planned` raises of the sources."""
    there = found.sources.keys() | found.closed.keys() | found.others
    if unknown := sorted(set(named) - there):
        known = ", ".join(sorted(there))
        raise ToolError(f"the library has no source {', '.join(unknown)}; it has: {known}")
    if barred := sorted((found.closed.keys() - found.sources.keys()) & set(named)):
        raise ToolError(f"the licence of {', '.join(barred)} forbids to hand it on: leave it out")
    if not found.records:
        raise SetupError(
            f"of the library nothing is sent unasked, it has {', '.join(sorted(there))} alone:"
            " name your folders as sources, or build open libraries with `kopt docs build`"
        )


def _why(source: str) -> str:
    if source in known_libraries():
        return "not asked for"
    return "a folder of yours is sent only if it is named"


def _that_fit(sizes: Sequence[int]) -> int:
    """Return the largest limit on one record with which all fit the Starter plan."""

    def tokens_at(most: int) -> int:
        return sum(min(size, most) for size in sizes)

    return bisect_right(range(max(sizes) + 1), STARTER_PLAN_TOKENS, key=tokens_at) - 1


def is_public(source: str, license_id: str | None) -> bool:
    """Say whether a chunk is sent unasked: of a known library, and its own licence lets it.

    What is the user's, folders and repositories, is sent only where the user names it.
    """
    return source in known_libraries() and may_be_handed_on(license_id)


def namespace_of(settings: Settings) -> str | None:
    """Return the namespace of the library index of this machine; None if there is none.

    It follows from what is public in it, the functions and the versions of their libraries, so
    that one upload serves all machines that have built the same.
    """
    path = library_index_path(settings)
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return _namespace(path, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=4)
def _namespace(path: Path, *_state: int) -> str | None:
    try:
        with closing(connected(path)) as connection:
            sources = meta_of(path, connection).sources
            rows = connection.execute(
                "select uid, source, license from chunk order by uid"
            ).fetchall()
    except (sqlite3.Error, IndexFailure):  # damaged: the next search heals it
        return None
    public = {uid: key for uid, key, license_id in rows if is_public(key, license_id)}
    keys = set(public.values())
    digest = hashlib.sha256()
    for source in sources:
        if source.source in keys:
            digest.update(f"{source.source} {source.version}\n".encode())
    for uid in public:
        digest.update(f"{uid}\n".encode())
    return f"kopt-{digest.hexdigest()[:16]}"
