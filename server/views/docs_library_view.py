"""The library index as text: its sources, what a build gave, what an upload would cost and did."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kopt.config.counted import counted
from kopt.tools.docs.build_records import BuildResult
from kopt.tools.docs.excerpts import shown
from kopt.tools.docs.pinecone_index.push_records import PushEstimate, PushResult
from kopt.tools.docs.query.request import VARIABLE
from kopt.tools.docs.records import ListedSource, SourcesResult

from .tables import View, grid

MB = MILLION = 1_000_000
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


def estimate_view(estimate: PushEstimate) -> View:
    """Yield what an upload would send and about what it costs."""
    yield Text(f"Upload to {shown(estimate.index)}, namespace {estimate.namespace}", style="bold")
    sources = ", ".join(f"{name} {count:,}" for name, count in estimate.sources.items())
    yield Text(f"  {counted(estimate.records, 'record')}: {shown(sources)}")
    for name, reason in estimate.kept_back.items():
        yield Text(f"  without {shown(name)}: {reason}")
    if estimate.left_out:
        yield Text(f"  without {counted(estimate.left_out, 'record')}: too long an id")
    yield Text(
        f"  about {estimate.estimated_tokens / MILLION:,.1f} million tokens for"
        f" {estimate.model}, {counted(estimate.requests, 'request')} at least; less if some are"
        " there already"
    )
    month = f"the {estimate.starter_plan_tokens / MILLION:,.0f} million a month of the Starter plan"
    if estimate.fits_starter_plan:
        yield Text(f"  fits {month}")
    else:
        yield Text(
            f"  more than {month}; --most-tokens {estimate.most_tokens_that_fit} fits",
            style="yellow",
        )


def push_view(result: PushResult) -> View:
    """Yield what was uploaded, and what was removed for it."""
    made = ", which was made" if result.created else ""
    yield Text(
        f"{shown(result.index)}{made} has {counted(result.records, 'record')} in"
        f" {result.namespace}; {result.sent:,} were sent now, about"
        f" {result.estimated_tokens / MILLION:,.1f} million tokens in"
        f" {counted(result.requests, 'request')}, {result.seconds:,.0f} s"
    )
    if result.deleted_namespaces:
        yield Text(f"Deleted, of earlier libraries: {', '.join(result.deleted_namespaces)}")
    if not result.is_visible:
        yield Text(
            "The service does not count all of them yet: searches may miss some for a while",
            style="yellow",
        )
    yield Text("Searches ask it from now on: kopt docs search, search_docs", style="dim")


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


def _cells(source: ListedSource) -> tuple[str, ...]:
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
