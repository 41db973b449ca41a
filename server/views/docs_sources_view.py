"""What is searched and what could be, a line a source."""

from collections.abc import Sequence

from rich.text import Text

from kopt.tools.docs.excerpts import shown
from kopt.tools.docs.query.request import VARIABLE
from kopt.tools.docs.records import SourceFacts, SourcesResult

from .tables import View, grid

_HEADS = ("source", "version", "licence", "weight#", "files#", "documents#")


def sources_view(result: SourcesResult, hidden: Sequence[str]) -> View:
    """Yield one line for each source, and where the index lies.

    Args:
        result: The sources.
        hidden: Those that this process does not search.
    """
    table = grid(*_HEADS, "holds", whole=_HEADS)
    for source in result.sources:
        table.add_row(*_cells(source), style="" if source.is_built else "dim")
    yield table
    if not all(source.is_built for source in result.sources):
        yield Text("not built: kopt docs build, or kopt docs build --source NAME")
    if hidden:
        yield Text(f"hidden by {VARIABLE}: {shown(', '.join(hidden))}", style="yellow")
    yield Text(f"index: {result.index}", style="dim")
    if result.degraded:
        yield Text(shown(result.degraded), style="yellow")


def _cells(source: SourceFacts) -> tuple[str, ...]:
    counts = (f"{source.files:,}", f"{source.chunks:,}") if source.is_built else ("", "")
    version = shown(source.version or "yours") if source.is_built else "not built"
    license_id = source.license or ""
    return (
        source.source,
        version,
        license_id,
        f"{source.quality:g}",
        *counts,
        shown(source.holds),
    )
