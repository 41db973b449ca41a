"""What a build of the library index gave: a line a source, and what to do next."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kopt.config.counted import counted
from kopt.tools.docs.excerpts import shown
from kopt.tools.docs.library_index.build_records import BuildResult

from .tables import View, grid

MB = 1_000_000
NAMED_SYNOPSES = 3
"""Of those without code, how many are named; --json has all."""

_HEADS = ("source", "version", "licence", "weight#", "files#", "documents#")


def build_view(result: BuildResult) -> View:
    """Yield one line for each source, what was skipped and why, and the size of it all."""
    yield _table(result)
    seconds = sum(result.seconds.values())
    state = "is now" if result.is_new else "was up to date:"
    yield Text(
        f"The library index {state} {counted(result.chunks, 'document')} of"
        f" {counted(len(result.sources), 'source')}, {result.index_bytes / MB:,.1f} MB;"
        f" {counted(result.files, 'file')}, {result.reused_files:,} of them as before;"
        f" {seconds:,.0f} s"
    )
    yield Text(result.index, style="dim")
    if result.synopses_without_code:
        yield Text(_lost(result.synopses_without_code), style="yellow")
    if result.degraded:
        yield Text(shown(result.degraded), style="yellow")
    yield Text('Search it: kopt docs search "fused add rmsnorm"', style="dim")


def _lost(names: Sequence[str]) -> str:
    some = ", ".join(names[:NAMED_SYNOPSES])
    more = ", ..." if len(names) > NAMED_SYNOPSES else ""
    count = f"{len(names):,} {'synopsis is' if len(names) == 1 else 'synopses are'}"
    return f"{count} about code that these versions do not have: {some}{more}"


def _table(result: BuildResult) -> Table:
    reasons = {one.source: shown(one.reason) for one in result.skipped}
    table = grid(*_HEADS, "", whole=_HEADS)
    for one in result.sources:
        reason = reasons.pop(one.source, "")
        table.add_row(
            one.source,
            shown(one.version or ""),
            one.license or "",
            f"{one.quality:g}",
            f"{one.files:,}",
            f"{one.chunks:,}",
            Text(f"as it was before: {reason}" if reason else "", style="yellow"),
        )
    for source, reason in reasons.items():
        table.add_row(source, "", "", "", "", "", Text(f"skipped: {reason}", style="yellow"))
    return table
