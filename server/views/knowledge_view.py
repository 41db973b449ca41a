"""The knowledge base as text: all states in a table, or one state in full."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from kopt.search.knowledge.policy.overview import (
    BaseReport,
    EntryReport,
    PairReport,
    PooledEvidence,
    StateReport,
    StateSummary,
)
from kopt.search.knowledge.records import Prior
from kopt.tools.docs.excerpts import shown

from .knowledge_words import arch_words, evidence_words, ratio, span, tries_words
from .tables import View, grid

_OVERVIEW = (
    "A state is a way in which programs are held back. tried: of its techniques; gained: of their"
    " tries, those that were faster beyond noise; expected best: how many times the speed, where a"
    " try has an effect, computed from priors (documented, never measured) and evidence."
)
_EXPECTATIONS = (
    "expected: how many times the speed, where a try has an effect, computed from priors"
    " (documented, never measured) and evidence; 95 %: where the next such try lies; works: the"
    " chance that a try has an effect."
)


def base_view(report: BaseReport) -> View:
    """Yield a line for each state, what has been tried most first."""
    table = grid("state", "bottleneck", "tried#", "gained#", "expected best", whole=("state",))
    for summary in report.states:
        table.add_row(*_summary_cells(summary), style="" if summary.tries else "dim")
    known = ", ".join(map(arch_words, report.architectures))
    others = ", ".join(name for name in report.origins if name != report.origin)
    by = f", imported from {others} too" if others else ""
    evidence = f"Evidence {known}{by}." if known else "No evidence yet: priors only."
    head = f"base {report.origin}, version {report.version}, {len(report.techniques)} techniques"
    yield Text(f"\n{head}", style="bold")
    yield Text(f"{evidence} Expectations: {arch_words(report.arch_key)}.", style="dim")
    yield table
    yield Text(_OVERVIEW, style="dim")
    yield Text("One state in full: kopt kb show STATE; every try: kopt kb samples", style="dim")
    yield Text(str(report.path), style="dim")


def state_view(report: StateReport) -> View:
    """Yield everything that is known of one state."""
    state = report.state
    found = " (discovered)" if state.is_discovered else ""
    yield Text(f"\n{state.id}  {state.bottleneck}{found}", style="bold")
    words = ", ".join(dict.fromkeys((*state.suspects, *state.traits)))
    yield Text(". ".join(part for part in (words, shown(state.description)) if part))
    if state.inherits:
        yield Text(f"Inherits from {state.inherits}.")
    yield Text(f"Source: {shown(state.source)}", style="dim")
    yield Text(
        f"Version {report.version}; expectations: {arch_words(report.arch_key)}.", style="dim"
    )
    yield _expectation_table(report.entries)
    yield Text(_EXPECTATIONS, style="dim")
    for entry in report.entries:
        yield from _entry_parts(entry)
    if report.pairs:
        yield Text("\nWhat comes before them and what that adds:", style="bold")
        for pair in report.pairs:
            yield from _pair_parts(pair)
    yield Text("\nWhat the techniques are:", style="bold")
    for technique in report.techniques:
        yield Text(f"{technique.id} ({technique.family}): {shown(technique.description)}")


def _summary_cells(summary: StateSummary) -> tuple[str, ...]:
    state, best = summary.state, summary.best
    expected = "" if best is None else f"{_name(best)} {ratio(best.expected.gain)}"
    tried = f"{summary.tried} of {summary.techniques}"
    gained = f"{summary.gained} of {summary.tries}" if summary.tries else "-"
    return (state.id, state.bottleneck, tried, gained, expected)


def _expectation_table(entries: Sequence[EntryReport]) -> Table:
    table = grid(
        *("technique", "expected#", "95 %", "works#", "tries#", "rests on"), whole=("95 %",)
    )
    for entry in entries:
        expected = entry.expected
        table.add_row(
            _name(entry),
            ratio(expected.gain),
            span(expected.interval),
            f"{expected.works * 100:.0f} %",
            str(expected.tries),
            "; ".join(expected.sources) or "nothing yet",
            style="dim" if entry.is_deprecated else "",
        )
    return table


def _entry_parts(entry: EntryReport) -> Iterator[Text]:
    if entry.inherited_from or not (entry.evidence or entry.notes or entry.is_deprecated):
        return
    yield Text(f"\n{_name(entry)}", style="bold")
    if entry.is_deprecated:
        yield Text("  deprecated: not drawn any more")
    if entry.prior:
        yield Text(f"  {_prior_words(entry.prior)}")
    for body in entry.evidence:
        yield from _evidence_parts(body)
    for note in entry.notes:
        rests = f" ({', '.join(note.evidence)})" if note.evidence else ""
        yield Text(f"  note: {shown(note.text)}{rests}")


def _pair_parts(pair: PairReport) -> Iterator[Text]:
    yield Text(f"{pair.before} before {pair.after}")
    if pair.prior:
        yield Text(f"  {_prior_words(pair.prior)}")
    for body in pair.evidence:
        yield from _evidence_parts(body)


def _evidence_parts(body: PooledEvidence) -> Iterator[Text]:
    evidence = body.evidence
    yield Text(f"  {arch_words(body.arch_key)}: {evidence_words(evidence)}")
    where = f"    on {', '.join(evidence.kernels)}; last {', '.join(evidence.seen)}"
    yield Text(f"{where}; by {', '.join(body.origins)}", style="dim")


def _prior_words(prior: Prior) -> str:
    return (
        f"prior {ratio(prior.gain)}, counts as {tries_words(prior.weight)}: {shown(prior.source)}"
    )


def _name(entry: EntryReport) -> str:
    inherited = f" (of {entry.inherited_from})" if entry.inherited_from else ""
    return f"{' + '.join(entry.techniques)}{inherited}{' †' if entry.is_deprecated else ''}"
