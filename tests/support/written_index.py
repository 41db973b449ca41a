"""A library index of a few functions, written without obtaining or chunking anything."""

from collections.abc import Sequence

from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.index_file import Sheet, index_version, write_index
from kopt.tools.docs.indexing.index_meta import IndexMeta, library_folder, library_index_path
from kopt.tools.docs.records import BuiltSource, Chunk


def function(
    source: str, path: str, line: int = 1, body: str = "", license_id: str | None = "Apache-2.0"
) -> Chunk:
    """Return a kernel that normalizes rows."""
    symbol = path.split("/")[-1].split(".")[0]
    code = f"__global__ void {symbol}(float* x) {{ /* {body} */ }}"
    return Chunk(
        source=source,
        version="1.0",
        license=license_id,
        path=path,
        title=f"{source}: {symbol}",
        symbol=symbol,
        kind="kernel",
        language="cuda",
        framework="cuda",
        signature=f"void {symbol}(float* x)",
        start_line=line,
        end_line=line + 2,
        comment="Normalizes the rows of a matrix.",
        tags=("row normalization",),
        body=code,
    )


def write_library(settings: Settings, chunks: Sequence[Chunk]) -> None:
    """Write the library index of `settings`, in place of an earlier one."""
    ensure_folder(library_folder(settings))
    versions = {chunk.source: chunk.version for chunk in chunks}
    sources = tuple(
        BuiltSource(
            source=source,
            version=version,
            license="Apache-2.0",
            quality=1.0,
            holds="Made for tests.",
            files=1,
            chunks=sum(chunk.source == source for chunk in chunks),
        )
        for source, version in sorted(versions.items())
    )
    meta = IndexMeta(key="made for tests", version=index_version(), model="none", sources=sources)
    sheets = [
        Sheet(chunk, entry_of(chunk, chunk.symbol or "", chunk.path, b"")) for chunk in chunks
    ]
    write_index(library_index_path(settings), meta, sheets)
