"""The knowledge base as text: states, one state in full, samples, calibration, differences."""

from collections.abc import Iterator, Sequence
from math import exp

from rich.table import Table
from rich.text import Text

from kopt.kernels.status import Status
from kopt.search.knowledge.diff import Difference, EvidenceChange
from kopt.search.knowledge.policy.calibration import Calibration
from kopt.search.knowledge.policy.overview import (
    BaseReport,
    EntryReport,
    PairReport,
    StateReport,
    StateSummary,
)
from kopt.search.knowledge.records import ESTIMATED, OUTCOMES, Evidence, Sample, arch_key
from kopt.tools.docs.visible_text import shown

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
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_STYLES = {"added": "green", "removed": "red", "changed": ""}
_CALIBRATION = (
    *("architecture", "state", "compared#", "no effect#", "failed#", "off by#", "bias#", "held#"),
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
            yield Text(f"{pair.before} before {pair.after}")
            yield from _known_parts(pair)
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
    yield from _known_parts(entry)
    for note in entry.notes:
        rests = f" ({', '.join(note.evidence)})" if note.evidence else ""
        yield Text(f"  note: {shown(note.text)}{rests}")


def _known_parts(item: EntryReport | PairReport) -> Iterator[Text]:
    """Yield prior and evidence of an entry or a pair."""
    if item.prior:
        yield Text(
            f"  prior {ratio(item.prior.gain)}, counts as {tries_words(item.prior.weight)}:"
            f" {shown(item.prior.source)}"
        )
    for body in item.evidence:
        evidence = body.evidence
        yield Text(f"  {arch_words(body.arch_key)}: {evidence_words(evidence)}")
        where = f"    on {', '.join(evidence.kernels)}; last {', '.join(evidence.seen)}"
        yield Text(f"{where}; by {', '.join(body.origins)}", style="dim")


def _name(entry: EntryReport) -> str:
    inherited = f" (of {entry.inherited_from})" if entry.inherited_from else ""
    return f"{' + '.join(entry.techniques)}{inherited}{' †' if entry.is_deprecated else ''}"


def samples_view(samples: Sequence[Sample]) -> View:
    """Yield each sample with what was predicted and what came: too much for columns."""
    if not samples:
        yield Text("no such samples; runs with techniques or sweeps leave some: kopt run")
    yield from (line for sample in samples for line in _sample_lines(sample))


def calibration_view(found: Sequence[Calibration]) -> View:
    """Yield predicted against measured, over all states and state by state."""
    if not found:
        yield Text("nothing was predicted yet: run a search with techniques first")
        return
    table = grid(*_CALIBRATION)
    for one in found:
        table.add_row(
            arch_words(one.arch_key),
            one.state or "all",
            str(one.compared),
            str(one.without_effect),
            str(one.failed),
            "" if one.discrepancy is None else ratio(one.discrepancy),
            "" if one.reward is None else ratio(one.reward),
            "" if one.coverage is None else f"{one.coverage * 100:.0f} % of {one.with_interval}",
        )
    legend = (
        "off by: mean size of measured / predicted; bias: its mean, below 1 where too much was"
        " promised; held: results inside their predicted 95 % interval."
    )
    yield table
    yield Text(legend, style="dim")


def differences_view(differences: Sequence[Difference]) -> View:
    """Yield a line for each item that is new, gone or other, with what changed below it."""
    if not differences:
        yield Text("no difference")
    for one in differences:
        name = f"{_SIGNS[one.change]} {one.subject} {one.name}"
        yield Text(name, style=_STYLES[one.change])
        yield from (Text(f"    {_change_words(change)}") for change in one.evidence)
        yield from (Text(f"    {shown(words)}") for words in one.told)


def _sample_lines(sample: Sample) -> Iterator[Text]:
    outcome = sample.outcome.replace("_", " ")
    yield Text(f"{sample.id}  {outcome}  {sample.kernel}", style="bold")
    if sample.measured is None:
        passed = sample.status is Status.PASSED  # and was refuted later, or is not what it says
        came = f"{'passed, not credited' if passed else sample.status.value} ({sample.arch})"
    else:
        how = arch_words(arch_key(sample.arch, sample.provenance))
        came = f"{_with_interval(sample.measured, sample.interval)}, {how}"
    predicted = _with_interval(sample.predicted, sample.predicted_interval) or "nothing"
    yield Text(f"  {' + '.join(sample.techniques)} in {sample.state}")
    yield Text(f"  predicted {predicted}; came {came}")


def _change_words(change: EvidenceChange) -> str:
    before, after = evidence_words(change.before), evidence_words(change.after)
    origins = change.origins_before, change.origins_after
    if all(origins) and origins[0] != origins[1]:
        before += f" (by {', '.join(change.origins_before)})"
        after += f" (by {', '.join(change.origins_after)})"
    return f"{arch_words(change.arch_key)}: {before} -> {after}"


def _with_interval(gain: float | None, interval: tuple[float, float] | None) -> str:
    if gain is None:
        return ""
    return f"{ratio(gain)} ({span(interval)})" if interval else ratio(gain)


def ratio(gain: float) -> str:
    """Return a ln ratio as `1.24x`."""
    return f"{exp(gain):.2f}x"


def span(interval: tuple[float, float] | None) -> str:
    """Return an interval of ln ratios as `1.05x to 1.44x`, nothing for none."""
    return "" if interval is None else f"{ratio(interval[0])} to {ratio(interval[1])}"


def arch_words(arch_key: str) -> str:
    """Return `measured on sm_90a` or `estimated for sm_90a`."""
    arch = arch_key.removesuffix(ESTIMATED)
    return f"measured on {arch}" if arch == arch_key else f"estimated for {arch}"


def tries_words(number: float) -> str:
    """Return `1 try`, `2 tries` or `0.5 tries`."""
    return f"{number:g} {'try' if number == 1 else 'tries'}"


def evidence_words(evidence: Evidence) -> str:
    """Return `5 tries: 3 gained, 1 lost, 1 failed; 1.24x where it had an effect`."""
    if not evidence.tries:
        return "no tries"
    numbers = ((getattr(evidence, name), name.replace("_", " ")) for name in OUTCOMES)
    counts = ", ".join(f"{count} {outcome}" for count, outcome in numbers if count)
    effect = f"; {ratio(evidence.mean)} where it had an effect" if evidence.weight else ""
    return f"{tries_words(evidence.tries)}: {counts}{effect}"
