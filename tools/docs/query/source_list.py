"""What there is to search, source by source, built or not: for `kopt docs sources`."""

from collections import Counter
from collections.abc import Iterator

from kopt import __version__
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.library.pins import known_libraries
from kopt.tools.docs.own.corpus import KOPT_LICENSE, QUALITY
from kopt.tools.docs.own.index import OwnIndex
from kopt.tools.docs.records import ListedSource, SourcesResult
from kopt.tools.docs.sources import SOURCES

from .indexes import OpenIndexes, with_indexes
from .request import check_left_out


def list_sources(settings: Settings) -> SourcesResult:
    """Return every source with its version, licence and size; kopt's own are built if need be.

    Raises:
        ToolError: A source that is to be hidden is unknown; the message lists what is known.
    """
    return with_indexes(settings, lambda there: _listed(there, settings))


def _listed(there: OpenIndexes, settings: Settings) -> SourcesResult:
    check_left_out(settings.without_sources, there.built)
    facts = (*_own(there.own), *_library(there.library))
    return SourcesResult(
        index=str(there.own.collection.cache.path),
        chunks=sum(one.chunks for one in facts),
        sources=facts,
        degraded="; ".join(reason for reason in (there.own.degraded, there.said) if reason) or None,
    )


def _own(index: OwnIndex) -> Iterator[ListedSource]:
    files = Counter(file.source for file in index.corpus.files)
    shipped = {file.source for file in index.corpus.files if file.is_ours}
    for source, holds in SOURCES.items():
        yield ListedSource(
            source=source,
            holds=holds,
            version=__version__ if source in shipped else None,
            license=KOPT_LICENSE if source in shipped else None,
            quality=QUALITY.get(source, 1.0),
            files=files[source],
            chunks=index.collection.size(source),
        )


def _library(library: Collection | None) -> Iterator[ListedSource]:
    """Yield what is in the library's index, then the known libraries that are not."""
    built = library.cache.meta.sources if library else ()
    for one in built:
        yield ListedSource.model_validate(one.model_dump(exclude={"kept"}))
    for known in known_libraries().values():
        if known.key not in {one.source for one in built}:
            yield ListedSource(**known.facts(), files=0, chunks=0, is_built=False)
