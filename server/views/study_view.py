"""A study as text: how the arms compare, what the target cost; and what one would cost."""

from pathlib import Path

from rich.text import Text

from kopt.config.counted import counted
from kopt.search.study.study_forecast import StudyForecast
from kopt.search.study.study_report import StudyReport
from kopt.search.study.study_words import facts, headlines, notes, sections

from .tables import View, grid


def study_view(report: StudyReport) -> View:
    """Yield what a study found; every figure says how it came about."""
    for name, value in facts(report):
        yield Text(f"{name}: {value}", style="bold" if name == "Study" else "")
    yield Text("")
    for title, table in sections(report):
        yield Text(title, style="bold")
        yield grid(*table.heads, rows=table.rows, header_style="", overflow="fold")
        yield Text("")
    for line in headlines(report):
        yield Text(line, style="bold")
    for note in notes(report):
        yield Text(note, style="dim")
    yield Text(f"Report: {Path(report.folder) / 'study.html'}")


def forecast_view(forecast: StudyForecast) -> View:
    """Yield what a study would do and cost; every figure says how it came about."""
    kernels = ", ".join(forecast.kernels)
    repeats = counted(forecast.repeats, "repeat")
    yield Text(f"{counted(forecast.runs, 'run')}: {kernels}; {repeats}", style="bold")
    yield Text(
        f"on {forecast.device}, compiled for {forecast.arch}, to {forecast.target:g}x; nothing was"
        " called or written"
    )
    if not forecast.asks_models:
        yield Text("No model is asked: kopt writes kernels where it can, and sweeps `tune`.")
    if not forecast.can_begin:
        yield Text("There is no key (ANTHROPIC_API_KEY): it could not be begun.", style="yellow")
    heads = ("Arm", "Runs#", "Candidates, estimated#", "Tokens, estimated#", "USD, estimated#")
    rows = tuple(
        (
            one.arm,
            str(one.runs),
            str(one.expected_candidates),
            f"{one.expected_tokens:,}",
            f"{one.expected_usd:.2f}",
            f"{one.most_usd:,.2f}",
        )
        for one in forecast.arms
    )
    yield grid(*heads, "at most#", rows=rows, header_style="", overflow="fold")
    if not forecast.asks_models:
        return
    yield Text(
        f"Expected: ${forecast.expected_usd:.2f} (estimated). At the very most:"
        f" ${forecast.most_usd:,.2f} (computed). Budget of each run: {forecast.budget}."
    )
    yield Text(f"Estimated with: {'; '.join(forecast.assumptions)}.", style="dim")
