"""A run as text: the ranking with its times, the status counts, the winner's file."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from kopt.config.device_names import sheet_of
from kopt.kernels.best_known import BestKnown
from kopt.kernels.status import Status
from kopt.search.reports.candidate_report import CandidateReport
from kopt.search.reports.run_list import RunList, RunSummary
from kopt.search.reports.run_report import RunFacts, RunReport
from kopt.search.reports.sections import copy_facts, worth
from kopt.search.step.result import StepResult
from kopt.tools.facts.bench_facts import interval_words
from kopt.tools.facts.wording import tune_words

from .diagnostics import advice_text, status_text
from .tables import NOTHING, View, count_cell, grid, interval_cell, ratio_cell

_AS_FAST = 0.005
RANKED = 10  # the report has all
RUN_COLUMNS = ("run", "status", "kernel", "evaluated#", "best#", "cost#", "begun")
COLUMNS = ("rank", "candidate", "round", "tune", "time", "speed", "registers", "checked")


def run_view(report: RunReport) -> View:
    """Yield what a run found; every time says how it came about."""
    yield Text(f"\n{report.run}  {report.kernel}", style="bold")
    yield Text(
        f"{report.status}, {report.evaluated} of {report.candidates} candidates evaluated on"
        f" {report.device} in {report.spent_s:.0f} s, seed {report.seed}",
        style="dim",
    )
    if report.stop_detail:
        yield Text(f"Stopped because {report.stop_detail}.")
    yield from (Text(f"{name}: {words}.") for name, words in copy_facts(report))
    if report.ranking:
        yield _ranking_table(report)
    yield _status_counts(report)
    yield from _failures(report)
    if report.ranking:
        yield provenance_note(report)
    if report.spend.calls:
        yield Text(f"Models: {worth(report)}")
    if report.retrievals:
        yield _retrievals(report)
    page = Path(report.folder) / "report.html"
    if page.is_file():
        yield Text(f"Report: {page}")
    yield _ending(report)
    if report.best_known is not None:
        yield Text(best_known_words(report, report.best_known))


def best_known_words(report: RunReport, known: BestKnown) -> str:
    """Return the best shipped kernel beside the winner: both times, how each came about, its file.

    Two estimates are compared by their ratio; a measured time of another session is not.
    """
    measured = ""
    if known.measured is not None:
        one = known.measured
        measured = f"{one.latency_us:.3f} us measured on {one.gpu}"
        if one.speedup is not None:
            measured += f", {one.speedup:.3f}x {one.baseline}"
    if known.estimated_us is None:
        words = f"{measured} in a session of its own"
    else:
        words = f"{known.estimated_us:.3f} us estimated{_beside_winner(report, known.estimated_us)}"
        words += f"; {measured}" if measured else ""
    origin = f"a kernel that comes with kopt, {known.standing} for {known.arch}: {known.source}"
    return f"Best known: {words}\n{origin}"


def _beside_winner(report: RunReport, known_us: float) -> str:
    if report.best_latency_us is None:
        return ""
    ratio = report.best_latency_us / known_us
    if abs(ratio - 1) < _AS_FAST:
        return ", as fast as this winner"
    if ratio > 1:
        return f", {ratio:.2f}x the speed of this winner"
    return f"; this winner has {1 / ratio:.2f}x its speed"


def runs_table(found: RunList) -> View:
    """Yield one line for each run, in the order given; below it those that cannot be read."""
    ids = ("run", "kernel")  # other commands take them: they are never cut or broken
    table = grid(*RUN_COLUMNS, whole=ids, overflow="fold")
    for run in found.runs:
        table.add_row(
            run.run,
            run.status,
            run.kernel,
            f"{run.evaluated} of {run.candidates}",
            _best(run),
            _cost(run),
            f"{datetime.fromtimestamp(run.created_us / 1e6, UTC):%Y-%m-%d %H:%M} UTC",
        )
    if found.runs:
        yield table
    for other in found.damaged:
        yield Text(f"{other.run} cannot be read: {other.why}")


def _ranking_table(report: RunReport) -> RenderableType:
    table = grid(*COLUMNS, whole=("rank", "round"), overflow="fold")
    by_seq = {entry.seq: entry for entry in report.population}
    for rank, seq in enumerate(report.ranking[:RANKED], start=1):
        entry = by_seq[seq]
        style = "bold green" if seq == report.winner else ""
        table.add_row(str(rank), *_ranked_cells(entry, report.start_latency_us), style=style)
    left_out = len(report.ranking) - RANKED
    if left_out <= 0:
        return table
    return Group(table, Text(f"... and {left_out} more: kopt runs report {report.run}"))


def _ranked_cells(entry: CandidateReport, start_us: float | None) -> Iterator[str]:
    yield seq_cell(entry)
    yield str(entry.round)
    yield tune_text(entry.tune)
    yield time_cell(entry.latency_us, entry.provenance)
    speed = speed_cell(entry)
    if speed == NOTHING and start_us and entry.latency_us:
        speed = f"{start_us / entry.latency_us:.2f}x start"
    yield speed
    yield count_cell(entry.registers_per_thread)
    yield "quick" if entry.full_status is None else f"full: {entry.full_status}"


def seq_cell(entry: CandidateReport) -> str:
    """Return the number of a candidate in its run."""
    return f"#{entry.seq}{' (start)' if entry.seq == 0 else ''}"


def time_cell(latency_us: float | None, provenance: str) -> str:
    """Return a time with how it came about."""
    return NOTHING if latency_us is None else f"{latency_us:.3f} us {provenance}"


def speed_cell(entry: CandidateReport) -> str:
    """Return the measured speedup of a candidate with its interval."""
    if entry.speedup is None or entry.speedup_interval is None:
        return NOTHING
    return f"{ratio_cell(entry.speedup)} ({interval_cell(entry.speedup_interval)})"


def tune_text(tune: dict[str, int]) -> str:
    """Return tune values as `--tune` takes them; `-` for none."""
    return tune_words(tune) or "-"


def _best(run: RunSummary) -> str:
    time = time_cell(run.best_latency_us, run.provenance)
    return time if run.best_speedup is None else f"{time}, {run.best_speedup:.3f}x {run.baseline}"


def _cost(run: RunFacts) -> str:
    """Return what the model calls of a run cost, in dollars; `-` without any."""
    if not run.spend.calls:
        return "-"
    if run.spend.cost_usd is None:
        return "unavailable"
    return f"${run.spend.cost_usd:.2f}{'' if run.is_paid else ' not paid'}"


def _status_counts(report: RunReport) -> Text:
    statuses = Counter(entry.status for entry in report.population if entry.status)
    counts = [f"{count} {status}" for status, count in statuses.most_common()]
    same = sum(entry.same_program_as is not None for entry in report.population)
    if same:
        counts.append(f"{same} of them the same program as an earlier one")
    return Text(f"Statuses: {', '.join(counts) or 'none yet'}")


def _failures(report: RunReport) -> Iterator[RenderableType]:
    """Yield why the first candidate of each failing status fell short: a few lines, not a log."""
    shown: set[Status] = set()
    for entry in report.population:
        if entry.status and entry.status is not Status.PASSED and entry.status not in shown:
            shown.add(entry.status)
            place = f"#{entry.seq} {tune_text(entry.tune)} "
            yield Text.assemble(place, status_text(entry.status), f": {entry.summary}")
            if report.winner is None:
                yield advice_text(entry.status)


def provenance_note(result: RunReport | StepResult) -> Text:
    """Return how the times and speeds of a run came about."""
    if result.gpu is not None:
        note = (
            f"Times and speeds are measured on {result.gpu.name} ({result.device}); speeds, which"
            f" the order is of, are paired with {result.baseline or 'no baseline'}, 95 % intervals."
        )
    else:
        gpu = sheet_of(result.device, result.arch).name
        note = f"Times are estimated on sim for {gpu}, not measured: docs/estimate.md."
    return Text(note, style="yellow")


def _retrievals(report: RunReport) -> Text:
    texts = {hit.uid for retrieval in report.retrievals for hit in retrieval.hits}
    times = f"{len(report.retrievals)} time{'' if len(report.retrievals) == 1 else 's'}"
    return Text(
        f"Documents were asked {times}; {len(texts)} of them were shown"
        f" (kopt runs show {report.run} --json lists them).",
        style="dim",
    )


def _ending(report: RunReport) -> Text:
    if report.winner is not None:
        tune = tune_text(report.winner_tune or {})
        improved = "the starting kernel itself" if report.winner == 0 else f"#{report.winner}"
        same = report.population[report.winner].same_program_as
        improved += "" if same is None else f" (the same program as #{same})"
        final = "".join(f"\n  {line}" for line in _winner_lines(report))
        return Text(
            f"Winner: {improved}, {tune}, passed the full check{final}\n{report.winner_path}",
            style="bold green",
        )
    if report.status in ("paused", "interrupted", "budget"):
        return Text("No winner yet.")
    if report.status == "running":
        return Text("Still running.")
    finalists = [entry for entry in report.population if entry.full_status is not None]
    reasons = "".join(f"\n  #{entry.seq}: {entry.full_summary}" for entry in finalists)
    why = "no candidate passed the full check"
    if any(entry.full_status is Status.PASSED for entry in finalists):
        why = "of those that passed the full check none has a time that is possible"
    return Text(f"No winner: {why}.{reasons}", style="bold red")


def _winner_lines(report: RunReport) -> Iterator[str]:
    """Yield the winner's final times, one line for each workload that it claims."""
    for time in report.winner_times:
        line = f"{time.workload}: {time.latency_us:.3f} us measured"
        if time.speedup is not None and time.speedup_interval is not None:
            evidence = interval_words(time.speedup_interval)
            line += f", {time.speedup:.3f}x {time.baseline}, {evidence}"
        yield line
