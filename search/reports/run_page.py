"""A run as its page shows it: the parts of the page, each of which can be rendered alone.

The report is all parts at once, with all code in it; the live view sends those that change, and
code when it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from kopt.tools.facts.next_command import NextCommand

from . import charts
from .candidate_code import CandidateCode, CodeLine, candidate_code, changes
from .candidate_rows import CandidateRows, candidate_rows
from .contents import Contents
from .markup import macro
from .memory import MemoryUse
from .memory_words import calibration_table, change_lines, memory_table
from .next_steps import next_commands
from .run_report import RunReport
from .sections import (
    Table,
    cost_table,
    facts,
    family_table,
    lesson_lines,
    lost_table,
    round_table,
    verdict,
    worth,
    yardstick_of,
)

PARTS = (
    *("outcome", "next", "winner", "candidates", "tree", "rounds", "lessons", "memory"),
    *("profiles", "roofline", "cost"),
)
"""The parts of a page from top to bottom: macros of `templates/run.html`."""
_MARKS = (
    "Disk: kept in the beam. Small circle: passed. Ring: winner. Cross: failed. Dot: not evaluated."
)
_INTERVALS = " Vertical bars are 95 % intervals."


@dataclass(frozen=True)
class RunPage:
    """What the templates of a run are filled with."""

    contents: Contents
    code_address: str = ""
    """Where the code of a candidate is had by its number; empty: the page holds it."""

    def parts(self) -> Iterator[tuple[str, Markup]]:
        """Yield each part with its name, from top to bottom."""
        for name in PARTS:
            yield name, macro("run.html", name, self)

    def code_part(self, seq: int) -> Markup:
        """Return what is shown of one candidate's code."""
        return macro("run.html", "candidate_code", self.code(seq), self)

    def code(self, seq: int) -> CandidateCode:
        """Return the code of a candidate."""
        return candidate_code(self.contents, seq)

    @property
    def report(self) -> RunReport:
        """What is known of the run."""
        return self.contents.report

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        return verdict(self.report)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What was run, where, and how it ended."""
        return tuple(facts(self.report))

    @property
    def next_commands(self) -> tuple[NextCommand, ...]:
        """What to do now."""
        return next_commands(self.report)

    @property
    def winner_changes(self) -> tuple[CodeLine, ...] | None:
        """What the winner's file changes of the start; None without a winner."""
        after = self.contents.winner_source
        if after is None:
            return None
        return changes(self.contents.start_source, after, ("start", "winner"))

    @cached_property
    def rows(self) -> CandidateRows:
        """Every candidate, the best first."""
        return candidate_rows(self.report)

    @property
    def candidate_chart(self) -> Markup:
        """The speed of every candidate."""
        return Markup(charts.candidate_chart(self.report))

    @property
    def chart_caption(self) -> str:
        """What the heights of that chart are."""
        return f"Speed of every candidate: {yardstick_of(self.report).words}"

    @property
    def marks(self) -> str:
        """What the marks of charts mean."""
        return _MARKS if self.report.gpu is None else _MARKS + _INTERVALS

    @property
    def tree_chart(self) -> Markup:
        """Who comes from whom."""
        return Markup(charts.tree_chart(self.report))

    @property
    def round_table(self) -> Table:
        """What each round came to."""
        return round_table(self.report)

    @property
    def family_table(self) -> Table:
        """What each family came to."""
        return family_table(self.report)

    @property
    def lost_table(self) -> Table:
        """What led to nothing."""
        return lost_table(self.report)

    @property
    def lesson_lines(self) -> tuple[str, ...]:
        """What the reflector said."""
        return tuple(lesson_lines(self.report))

    @property
    def memory_table(self) -> Table:
        """The steps that the knowledge base learned from."""
        return memory_table(self._memory)

    @property
    def calibration_table(self) -> Table:
        """How good its predictions were."""
        return calibration_table(self._memory)

    @property
    def change_lines(self) -> tuple[str, ...]:
        """What the learner changed."""
        return tuple(change_lines(self._memory))

    @property
    def _memory(self) -> MemoryUse:
        assert self.report.memory is not None  # the templates ask
        return self.report.memory

    @property
    def roof_words(self) -> str:
        """The work of a call and the least time that it takes."""
        roof = self.contents.roof
        assert roof is not None  # the templates ask
        bound = "launch" if roof.line.is_launch_dominated else roof.line.bound
        return (
            f"{roof.model.total_bytes:,} bytes and {roof.model.flop:,} operations a call, computed:"
            f" no candidate takes less than {roof.line.floor_us:.3f} us on {roof.line.gpu}"
            f" ({bound} bound)."
        )

    @property
    def roofline_chart(self) -> Markup | None:
        """The candidates under the roofline; None for a kernel without operations."""
        roof = self.contents.roof
        assert roof is not None  # the templates ask
        chart = charts.roofline_chart(self.report, roof.model, roof.line)
        return None if chart is None else Markup(chart)

    @property
    def worth(self) -> str:
        """What the model calls cost and bought; empty without any."""
        return worth(self.report)

    @property
    def cost_table(self) -> Table:
        """What each role cost."""
        return cost_table(self.report)
