"""The library index as text: its sources, what a build gave, what an upload would cost and did."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kopt.config.counted import counted
from kopt.tools.docs.build_records import BuildProgress, BuildResult
from kopt.tools.docs.pinecone_index.push_records import PushEstimate, PushProgress, PushResult
from kopt.tools.docs.query.hidden_sources import VARIABLE
from kopt.tools.docs.records import ListedSource, SourcesResult
from kopt.tools.docs.visible_text import shown

from .tables import View, WorkStep, grid

MB = MILLION = 1_000_000
NAMED_SYNOPSES = 3
"""How many synopses without code are named; --json has all of them."""

_HEADS = ("source", "version", "licence", "weight#", "files#", "documents#")
MANY = 100
"""Files or documents whose quarters are told; fewer are there before anyone wonders."""
_QUARTER = 25


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
    """Yield one line for each source, where the index lies, and what this process hides."""
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


def build_step(progress: BuildProgress) -> WorkStep:
    """Return how far a build is."""
    match progress.step:
        case "wait":
            words = "waiting for another process that builds"
            return WorkStep(words, "", words, 0, None)
        case "download":
            return _download(progress)
        case "read":
            return _counted(f"{progress.source}: reading", "file", progress)
        case "write":
            return _counted("writing the index", "document", progress)


def push_step(progress: PushProgress) -> WorkStep:
    """Return how far an upload is."""
    words = {
        "wait": "waiting",
        "index": "waiting for the index to be ready",
        "upload": "uploading",
        "settle": "waiting until all records can be found",
    }[progress.step]
    if progress.note:
        words += f": {progress.note}"
    total = counted(progress.total, "record")
    amount = f"{progress.done:,} of {total}"
    line = f"{words}, {total}"
    if progress.step == "upload":
        line += f", {_quarter(progress.done, progress.total)} %"
    return WorkStep(words, amount, line, progress.done, progress.total or None)


def _download(progress: BuildProgress) -> WorkStep:
    words = f"{progress.source}: getting"
    done, total = progress.done, progress.total
    if total is None:
        amount = f"{done / MB:,.1f} MB" if done else ""
        return WorkStep(words, amount, "", done, None)
    line = f"{words} {total / MB:,.1f} MB"
    if total >= MB:
        line += f", {_quarter(done, total)} %"
    return WorkStep(words, f"{done / MB:,.1f} of {total / MB:,.1f} MB", line, done, total)


def _counted(words: str, noun: str, progress: BuildProgress) -> WorkStep:
    if progress.total is None:
        return WorkStep(words, "", words, progress.done, None)
    total = counted(progress.total, noun)
    line = f"{words}, {total}"
    if progress.total >= MANY:
        line += f", {_quarter(progress.done, progress.total)} %"
    return WorkStep(words, f"{progress.done:,} of {total}", line, progress.done, progress.total)


def _quarter(done: int, total: int) -> int:
    """Return per cent, rounded down to quarters: a line for each is enough."""
    return 100 if done >= total else done * 100 // total // _QUARTER * _QUARTER
