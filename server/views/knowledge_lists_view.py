"""Lists of the knowledge base as text: samples, calibration, what two bases say differently."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from kopt.kernels.status import Status
from kopt.search.knowledge.diff import Difference, EvidenceChange
from kopt.search.knowledge.policy.calibration import Calibration
from kopt.search.knowledge.records import Sample, arch_key
from kopt.tools.docs.excerpts import shown

from .knowledge_words import arch_words, evidence_words, ratio, span
from .tables import View, grid

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_STYLES = {"added": "green", "removed": "red", "changed": ""}

_CALIBRATION = (
    *("architecture", "state", "compared#", "no effect#", "failed#", "off by#", "bias#", "held#"),
)


def samples_view(samples: Sequence[Sample]) -> View:
    """Yield each sample with what was predicted and what came: too much for columns."""
    yield from (line for sample in samples for line in _sample_lines(sample))


def calibration_view(found: Sequence[Calibration]) -> View:
    """Yield predicted against measured, over all states and state by state."""
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
