"""A run of a suite and its score as text."""

from rich.text import Text

from kopt.config.counted import counted, few_of
from kopt.search.reports.suite_words import facts, headline, notes, score_table
from kopt.tools.suite.suite_score import SuiteScore
from kopt.tools.suite.suite_stage import SuiteRun

from .tables import View, grid

_SHOWN = 40
"""So many tasks that are not valid are named; all are in the results and on the page."""


def suite_run_view(run: SuiteRun) -> View:
    """Yield the tasks that are not valid, each with its first reason, and how many are."""
    wrong = [one for one in run.results if not one.is_valid]
    rows = [
        (one.task, "fault" if one.status is None else one.status.value, _first_line(one.why))
        for one in wrong[:_SHOWN]
    ]
    if rows:
        yield grid("Not valid", "Status", "Why", rows=rows, overflow="fold")
    if len(wrong) > _SHOWN:
        yield Text(f"and {len(wrong) - _SHOWN} more")
    done = len(run.results)
    amount = counted(done, "task") + ("" if done == run.planned else f" of {run.planned}")
    kept = f", {run.kept} of them done before" if run.kept else ""
    times = "times measured" if run.set.is_measured else "times estimated, none measured"
    yield Text(f"{amount} on {run.set.device}{kept}: {run.valid} valid; {times}", style="bold")
    if run.without_problem:
        amount = counted(len(run.without_problem), "task")
        names = few_of(run.without_problem)
        yield Text(f"{amount} more without a problem, counted as not valid: {names}")
    yield Text(f"Results: {run.folder}")


def suite_score_view(score: SuiteScore) -> View:
    """Yield what was scored and a row for each figure; tasks one by one are on the page."""
    for name, value in facts(score):
        yield Text(f"{name}: {value}", style="bold" if name == "Suite" else "")
    yield Text("")
    table = score_table(score)
    yield grid(*table.heads, rows=table.rows, header_style="", overflow="fold")
    yield Text(table.caption, style="dim")
    yield Text("")
    yield Text(headline(score), style="bold")
    for note in notes(score):
        yield Text(note, style="dim")


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
