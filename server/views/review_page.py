"""A review as one page, on a terminal and as Markdown: the answer first, then what it rests on.

The sections are made once and rendered twice. What a candidate's author chose (names, messages) is
shown on one line, without control characters and without markup.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from kopt.config.counted import counted
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.review_result import ReviewAnswer, ReviewedWorkload, ReviewResult, SpeedLimit
from kopt.kernels.status import Status
from kopt.tools.facts.bench_facts import SPEEDUPS, doubts, percent, rejected_words
from kopt.tools.facts.check_facts import (
    check_summary,
    fixed_scalar_words,
    hidden_shape_words,
    passed_over_words,
    regime_words,
    sanitizer_words,
    unexecuted_words,
)
from kopt.tools.facts.wording import plain_beginning, short_id, tune_words

from .tables import (
    NOTHING,
    View,
    grid,
    interval_cell,
    markdown_table,
    ratio_cell,
    us_cell,
    words_cell,
)

ANSWERS: dict[ReviewAnswer, tuple[str, str]] = {
    "holds": ("The claim holds", "bold green"),
    "does_not_hold": ("The claim does not hold", "bold red"),
    "cannot_be_told": ("It cannot be told whether the claim holds", "bold yellow"),
}
_LONGEST = 600  # characters of a sentence on the page
_SPEED = (
    *("workload", "kernel us#", "baseline", "baseline us#", "speedup#", "95 % interval#"),
    *("verdict", "answer"),
)
_LIMITS = ("workload", "least us#", "by", "baseline", "baseline us#", "at most#", "from")


@dataclass(frozen=True)
class PageSection:
    """A heading with sentences, and a table below them if there are rows."""

    title: str
    lines: tuple[str, ...]
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def review_view(result: ReviewResult) -> View:
    """Yield the page for a terminal."""
    yield Text(_headline(result), style=ANSWERS[result.answer][1])
    yield Text(_subject(result), style="dim")
    for section in _sections(result):
        yield Text(section.title, style="bold")
        yield from (Text(f"  {line}") for line in section.lines)
        if section.rows:
            yield grid(*section.heads, rows=section.rows, whole=section.heads[:1])
    if result.page_path is not None:
        yield Text(f"Page: {result.page_path}", style="dim")


def review_markdown(result: ReviewResult) -> str:
    """Return the page as Markdown."""
    claim = f"{result.claim.speedup:g}x"
    parts = [
        f"# Review: {claim} for {_escaped(_one_line(result.source_name))}",
        f"**{_escaped(_headline(result))}**",
        _escaped(_subject(result)),
    ]
    for section in _sections(result):
        parts.append(f"## {section.title}")
        if section.lines:
            parts.append("\n".join(f"- {_escaped(line)}" for line in section.lines))
        if section.rows:
            rows = [[_escaped(cell) for cell in row] for row in section.rows]
            parts.append(markdown_table(section.heads, rows))
    return "\n\n".join(parts) + "\n"


def _headline(result: ReviewResult) -> str:
    words = ANSWERS[result.answer][0]
    first, *rest = result.reasons
    more = f" (and {counted(len(rest), 'further reason')} below)" if rest else ""
    return f"{words}, because {_one_line(first)}{more}."


def _subject(result: ReviewResult) -> str:
    gpu = "" if result.gpu is None else f", {result.gpu.name}, driver {result.gpu.driver_version}"
    tune = f", {tune_words(result.check.tune)}" if result.check.tune else ""
    name = _one_line(result.source_name)
    return (
        f"{name} ({short_id(result.candidate)}) for {result.kernel} on {result.device}{gpu},"
        f" {result.arch}{tune}, kopt {result.kopt_version}"
    )


def _sections(result: ReviewResult) -> Iterator[PageSection]:
    yield _claim_section(result)
    if result.reference:
        yield PageSection("Reference", tuple(map(_one_line, result.reference)))
    yield _check_section(result)
    if any(one.bench is not None for one in result.workloads):
        yield _speed_section(result)
    if result.workloads:
        yield _limit_section(result)
    yield PageSection("Flags", tuple(_flags(result)) or ("none",))
    yield PageSection("What the answer does not rest on", tuple(_missing(result)))


def _claim_section(result: ReviewResult) -> PageSection:
    claim = result.claim
    against = claim.against or "the fastest baseline that does the same work"
    claimed = [one.workload for one in result.workloads if one.is_claimed]
    of = ", ".join(claimed) or result.kernel
    what = f"{claim.speedup:g}x the speed of {against}, "
    what += f"as the geometric mean over {of}" if claim.is_mean else f"at {of}"
    reasons = result.reasons if len(result.reasons) > 1 else ()  # one alone is in the headline
    return PageSection("Claim", (what, *(f"because {_one_line(one)}" for one in reasons)))


def _check_section(result: ReviewResult) -> PageSection:
    return PageSection("Correctness", tuple(_check_lines(result)))


def _check_lines(result: ReviewResult) -> Iterator[str]:
    check = result.check
    yield f"{check.status.value}, level {check.level} on {check.device}: {check_summary(check)}"
    if check.status is Status.PASSED:
        hidden = sum(one.hidden_seeds for one in check.workloads)
        seeds = counted(hidden, "hidden seed")
        yield f"Inputs: the regimes of level {check.level}, {seeds} drawn for this check alone"
    shapes, scalars = hidden_shape_words(check), fixed_scalar_words(check)
    waiting, regimes = passed_over_words(check), regime_words(check)
    if waiting is not None:
        yield f"Passed over: {waiting}"
    if shapes is not None:
        yield f"Other shapes: {shapes}"
    if regimes is not None:
        yield f"Regimes left out: {regimes}"
    if scalars is not None:
        yield f"Fixed scalars: {scalars}"
    if check.race_check is not None and check.race_check.outcome == "passed":
        yield _one_line(f"Races: {check.race_check.words}")
    for one in result.sanitizer:
        words = "; ".join(sanitizer_words(run) for run in one.runs)
        yield _one_line(f"compute-sanitizer at {one.kernel}: {words}")


def _speed_section(result: ReviewResult) -> PageSection:
    rows = tuple(row for one in result.workloads for row in _speed_rows(one))
    return PageSection("Speed", tuple(_speed_lines(result)), _SPEED, rows)


def _speed_rows(one: ReviewedWorkload) -> Iterator[tuple[str, ...]]:
    bench = one.bench
    if bench is None or not bench.comparisons:
        status = "not timed" if bench is None else bench.status.value
        yield (one.workload, *[NOTHING] * 5, status, words_cell(one.answer))
        return
    own = None if bench.latency is None else bench.latency.median_us
    for place, compared in enumerate(bench.comparisons):
        theirs = compared.baseline_latency
        yield (
            one.workload if place == 0 else "",
            us_cell(own) if place == 0 else "",
            compared.baseline.label,
            us_cell(None if theirs is None else theirs.median_us),
            ratio_cell(compared.speedup),
            interval_cell(compared.interval),
            words_cell(compared.verdict),
            words_cell(one.answer) if place == 0 else "",
        )


def _speed_lines(result: ReviewResult) -> Iterator[str]:
    yield f"{SPEEDUPS} Times have a cold L2 unless a doubt says otherwise."
    if result.mean is not None and len(result.mean.workloads) > 1:
        mean = result.mean
        yield f"Geometric mean: {mean.speedup:.3f}x, {interval_cell(mean.interval)}"
    for one in result.workloads:
        if one.bench is not None:
            yield from (f"{one.workload}: {line}" for line in _bench_lines(one.bench))


def _bench_lines(bench: BenchResult) -> Iterator[str]:
    """Yield the noise, whether both sides do the same work, what was not timed, and doubts."""
    for compared in bench.comparisons:
        floor = compared.noise_floor
        if floor is not None:
            yield f"{compared.pairs} pairs, noise threshold {percent(floor.threshold)}"
        like = compared.like_for_like
        same = "the same work on the same data" if like.holds else "; ".join(like.differences)
        yield f"like for like with {compared.baseline.label}: {same}"
    yield from (f"not timed: {_one_line(rejected_words(path))}" for path in bench.rejected)
    yield from (f"doubt: {doubt}" for doubt in doubts(bench))


def _limit_section(result: ReviewResult) -> PageSection:
    workloads = result.workloads
    rows = tuple(_limit_row(one.workload, one.limit) for one in workloads if one.limit is not None)
    without = [one.workload for one in workloads if one.limit is None]
    lines: tuple[str, ...] = ()
    if rows:
        lines = (
            "The baseline's time is measured, the least time computed: the bytes of the workload at"
            " the data sheet's bandwidth, or an empty kernel.",
        )
    if without:
        there = f", and no receipt for {result.arch} has one" if result.gpu is None else ""
        unknown = f"no baseline's cold time was measured here{there}"
        lines += (f"Unavailable at {', '.join(without)}: {unknown}",)
    return PageSection("What physics leaves", lines, _LIMITS, rows)


def _limit_row(workload: str, limit: SpeedLimit) -> tuple[str, ...]:
    return (
        workload,
        us_cell(limit.least_us),
        limit.bound,
        limit.baseline,
        us_cell(limit.baseline_us),
        f"{limit.speedup:.2f}x",
        f"{limit.evidence}, {limit.gpu}",
    )


def _flags(result: ReviewResult) -> Iterator[str]:
    """Yield what was found in source and binary, with lines, each once."""
    found = [*result.check.diagnostics]
    found += [entry for one in result.sanitizer for run in one.runs for entry in run.findings]
    found += [
        entry
        for one in result.workloads
        for entry in (() if one.bench is None else one.bench.diagnostics)
    ]
    yield from dict.fromkeys(_diagnostic_words(result.source_name, entry) for entry in found)
    yield from (f"in the machine code: {_one_line(text)}" for text in result.check.compiled.flagged)


def _diagnostic_words(name: str, found: Diagnostic) -> str:
    place = found.file or name
    line = "" if found.line is None else f":{found.line}"
    hint = f" ({found.hint})" if found.hint else ""
    return _one_line(f"{place}{line}: {found.severity}: {found.message}{hint}")


def _missing(result: ReviewResult) -> Iterator[str]:
    """Yield what this review could not look at, and what would."""
    is_extension = result.form == "torch_extension"
    if is_extension:
        yield "Its speed: a process that runs its own host code cannot be believed on its own time"
        yield "Other shapes than the kernel's: an extension does not say which it serves"
        yield "Races that do not show in values: it was not run under compute-sanitizer"
    elif result.gpu is None:
        yield "No GPU: nothing was timed, and compute-sanitizer was not run (--device cuda:0)"
    elif not result.sanitizer:
        yield "compute-sanitizer was not run: the check ended before"
    elif any(one.bench is None for one in result.workloads):
        yield "Not every workload was timed: what failed before ended the review"
    races, not_run = result.check.race_check, unexecuted_words(result.check)
    if races is not None and races.outcome == "unavailable":
        yield _one_line(f"Races between blocks: {races.words}")
    if not_run is not None:
        yield f"Lines that were not run: {not_run}"
    yield "What the author says of the kernel, its header's notes included"
    yield "Other GPUs, drivers and libraries than these; one session here is one allocation"


def _one_line(text: str) -> str:
    return plain_beginning(text, _LONGEST)


def _escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it stands."""
    return re.sub(r"([\\`*\[\]<>])", r"\\\1", text)
