"""What would be uploaded, without asking the service: `push_estimate` and the records."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.library_index.reading import all_chunks
from kopt.tools.docs.records import Chunk

from .index_shape import EMBEDDING_MODEL, MOST_RECORDS, TEXT_FIELD
from .library_version import PUBLIC_SOURCES, namespace_of
from .push_records import STARTER_PLAN_TOKENS, PushEstimate, PushRequest
from .remote_ids import MOST_ID_BYTES
from .remote_records import MOST_TOKENS, RemoteRecord, batches, remote_record

LEAST_TOKENS = 60
"""Of one record: half a card, which has 126 at the median."""
_PROPRIETARY = "cuda"


@dataclass(frozen=True)
class Plan:
    """All records of one namespace."""

    namespace: str
    records: Sequence[RemoteRecord]
    sources: dict[str, int]
    kept_back: dict[str, str]
    left_out: int


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
        sources=plan.sources,
        kept_back=plan.kept_back,
        left_out=plan.left_out,
        records=len(plan.records),
        requests=sum(1 for _ in batches(plan.records, TEXT_FIELD, MOST_RECORDS["records"])),
        estimated_tokens=sum(sizes),
        fits_starter_plan=fits,
        most_tokens=request.most_tokens,
        most_tokens_that_fit=None if fits else _that_fit(sizes),
    )


def planned(request: PushRequest, settings: Settings) -> Plan:
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
    wanted = frozenset(request.sources) or PUBLIC_SOURCES
    if _PROPRIETARY in wanted:
        raise ToolError("the source cuda is NVIDIA's and may not be handed on: leave it out")
    sources: Counter[str] = Counter()
    others: Counter[str] = Counter()
    records: list[RemoteRecord] = []
    left_out = 0
    for chunk in _chunks(settings):
        if chunk.source not in wanted:
            others[chunk.source] += 1
            continue
        record = remote_record(chunk, request.most_tokens)
        if len(record.id) > MOST_ID_BYTES:
            left_out += 1
            continue
        sources[chunk.source] += 1
        records.append(record)
    if unknown := sorted(set(request.sources) - sources.keys()):
        known = ", ".join(sorted(sources | others))
        raise ToolError(f"the library has no source {', '.join(unknown)}; it has: {known}")
    if not records:
        raise SetupError(
            f"of the library nothing is sent unasked, it has {', '.join(sorted(others))} alone:"
            " name your folders as sources, or build open libraries with `kopt docs build`"
        )
    return Plan(
        namespace, records, dict(sources), {name: _why(name) for name in sorted(others)}, left_out
    )


def _chunks(settings: Settings) -> Iterator[Chunk]:
    try:
        yield from all_chunks(settings)
    except (sqlite3.Error, ValueError) as error:
        raise SetupError(
            f"the library index cannot be read ({error}): build it again with `kopt docs build`"
        ) from error


def _why(source: str) -> str:
    if source == _PROPRIETARY:
        return "its licence forbids to hand it on"
    if source in PUBLIC_SOURCES:
        return "not asked for"
    return "a folder of yours is sent only if it is named"


def _that_fit(sizes: Sequence[int]) -> int:
    """Return the largest limit on one record with which all fit the Starter plan."""
    low, high = 0, max(sizes)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= STARTER_PLAN_TOKENS:
            low = middle
        else:
            high = middle - 1
    return low
