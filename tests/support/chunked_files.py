"""Files of a made-up library, for tests of the chunker."""

from kopt.tools.docs.chunking.library_chunks import library_chunks
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.sources import LibrarySource, SourceFile

LIBRARY = LibrarySource("acme", "1.2.3", "MIT", 0.9, "Kernels that nobody runs.")


def library_file(path: str, content: str | bytes) -> SourceFile:
    """Return a file of LIBRARY."""
    data = content.encode() if isinstance(content, str) else content
    return SourceFile(LIBRARY, path, data)


def chunks_of(content: str | bytes, path: str = "csrc/a.cu") -> list[Chunk]:
    """Return the chunks of a file of LIBRARY."""
    return library_chunks(library_file(path, content))


def chunk_of(symbol: str, content: str | bytes, path: str = "csrc/a.cu") -> Chunk:
    """Return the first chunk of `symbol`."""
    chunks = chunks_of(content, path)
    found = [chunk for chunk in chunks if symbol in (chunk.symbol or "").split(", ")]
    assert found, [chunk.symbol for chunk in chunks]
    return found[0]
