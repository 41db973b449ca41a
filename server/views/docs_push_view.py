"""An upload to Pinecone as text: what it would cost, and what was done."""

from rich.text import Text

from kopt.config.counted import counted
from kopt.tools.docs.excerpts import shown
from kopt.tools.docs.pinecone_index.push_records import PushEstimate, PushResult

from .tables import View

MILLION = 1_000_000


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
