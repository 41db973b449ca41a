"""What the index holds, source by source: for `kopt docs sources`."""

from collections import Counter

from kopt.config.settings import Settings

from .corpus import QUALITY, SOURCES
from .index import Index, with_index
from .records import SourceFacts, SourcesResult


def list_sources(settings: Settings) -> SourcesResult:
    """Return every source with its version, licence and size; the index is built if need be."""

    def answer(index: Index) -> SourcesResult:
        rows = index.connection.execute("select source, count(*) from chunk group by source")
        chunks = dict(rows)
        files = Counter(file.source for file in index.corpus.files)
        shipped = {file.source: file for file in index.corpus.files if file.version}
        facts = tuple(
            SourceFacts(
                source=source,
                holds=holds,
                version=shipped[source].version if source in shipped else None,
                license=shipped[source].license if source in shipped else None,
                quality=QUALITY.get(source, 1.0),
                files=files[source],
                chunks=chunks.get(source, 0),
            )
            for source, holds in SOURCES.items()
        )
        return SourcesResult(
            index=index.place,
            chunks=sum(chunks.values()),
            sources=facts,
            degraded=index.degraded,
        )

    return with_index(settings, answer)
