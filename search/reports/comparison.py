"""Runs side by side: what each was asked, what it found, what it cost, how their winners differ.

Nothing is divided by anything of another run: times of two runs were taken at different moments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from markupsafe import Markup

from .candidate_code import CodeLine, changes
from .candidate_report import ratio_words
from .markup import macro
from .run_page import RunPage
from .run_report import RunReport
from .sections import Table, yardstick_of
from .spending import usd_words

PARTS = ("comparison", "charts", "winners")
"""The parts of the page from top to bottom: macros of `templates/comparison.html`."""
_NOTE = (
    "Each speed is of its own run, over that run's own baseline or start. Runs are measured at"
    " different moments: to compare two winners, time both anew on one GPU with kopt bench."
)

_ROWS: tuple[tuple[str, Callable[[RunReport], str]], ...] = (
    ("Kernel", lambda report: report.kernel),
    ("Status", lambda report: report.status),
    ("Device", lambda report: report.gpu.name if report.gpu else report.device),
    ("Compiled for", lambda report: report.arch),
    ("Speed is", lambda report: yardstick_of(report).words),
    ("Best", lambda report: _best(report)),
    ("Its time", lambda report: _time(report)),
    ("Winner", lambda report: "" if report.winner is None else f"#{report.winner}"),
    ("Candidates", lambda report: f"{report.evaluated} of {report.candidates} evaluated"),
    ("Rounds", lambda report: str(len(report.round_figures))),
    ("Search", lambda report: f"{report.strategy}, beam {report.beam_width}, seed {report.seed}"),
    ("Budget", lambda report: report.budget),
    ("Wall time", lambda report: f"{report.spent_s:.1f} s"),
    ("Models", lambda report: _models(report)),
    ("Stopped", lambda report: report.stop_detail or ""),
)


@dataclass(frozen=True)
class WinnerChanges:
    """How one run's winner differs from that of the run before it on the page."""

    before: str
    after: str
    lines: tuple[CodeLine, ...]


@dataclass(frozen=True)
class ComparisonPage:
    """What the template of several runs is filled with."""

    pages: tuple[RunPage, ...]

    def parts(self) -> Sequence[tuple[str, Markup]]:
        """Return each part with its name, from top to bottom."""
        return [(name, macro("comparison.html", name, self)) for name in PARTS]

    @property
    def note(self) -> str:
        """What may be read from two columns, and what not."""
        return _NOTE

    @property
    def table(self) -> Table:
        """A row for each property, a column for each run."""
        reports = [page.report for page in self.pages]
        rows = tuple((name, *map(cell, reports)) for name, cell in _ROWS)
        return Table(("", *(report.run for report in reports)), rows)

    @cached_property
    def winner_changes(self) -> tuple[WinnerChanges, ...]:
        """How the winners differ, of runs of one kernel that have one."""
        won = [page for page in self.pages if page.contents.winner_source is not None]
        return tuple(
            WinnerChanges(
                before=one.report.run,
                after=other.report.run,
                lines=changes(
                    one.contents.winner_source or "",
                    other.contents.winner_source or "",
                    (one.report.run, other.report.run),
                ),
            )
            for one, other in pairwise(won)
            if one.report.kernel == other.report.kernel
        )


def _best(report: RunReport) -> str:
    if report.gpu is not None:
        return ratio_words(report.best_speedup, report.best_speedup_interval)
    return ratio_words(report.ratio, None)


def _time(report: RunReport) -> str:
    if report.best_latency_us is None:
        return ""
    return f"{report.best_latency_us:.3f} us {report.provenance}"


def _models(report: RunReport) -> str:
    spend = report.spend
    if not spend.calls:
        return "none was asked"
    return f"{spend.calls} calls, {spend.tokens:,} tokens, {usd_words(spend)}"
