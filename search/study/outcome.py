"""The outcome of one run of a study, read from its store: speed, cost, the way to the target.

A run that ended without a winner leaves its user with the starting kernel, and counts as that.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Literal

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance
from kopt.search.records.members import Member
from kopt.search.records.run_state import RunStatus
from kopt.search.reports.run_report import RunReport, report_run, view_run
from kopt.search.reports.spending import call_tokens, known_usd
from kopt.search.selection.ranking import Speed, speed_of, unrefuted
from kopt.search.store.run_reader import Row, RunReader

from .plan import Cell, StudyPlan
from .study_statistics import Ending


class TargetReach(Record):
    """How a run came to the target speed, or did not; what it had spent by then, else in all."""

    ending: Ending
    """reached; cut: its budget was spent before; never: it ended by itself without."""
    candidate: int | None
    """`seq` of the first that reached it, by the lower bound of its interval where it has one."""
    candidates: int
    """Evaluated, the start not counted."""
    tokens: int
    """Tokens of all calls that had begun."""
    usd: float
    """Computed from the table of prices."""


class RunOutcome(Record):
    """One run that has ended."""

    winner: int | None
    speed: float | None
    """Speed of the winner, else of the start: over the baseline where measured, else the
    estimated one over the start. None without a time."""
    speed_interval: tuple[float, float] | None
    """95 %; None for an estimate."""
    provenance: Provenance
    baseline: str | None
    """The baseline of a measured speed."""
    ratio: float | None
    """How many times as fast as the start its winner is; 1 without one. None without a time."""
    target: TargetReach
    candidates: int
    """Evaluated, the start not counted."""
    tokens: int
    usd: float
    spent_s: float
    """Wall seconds."""
    stop_detail: str | None


class RunStanding(Record):
    """The status of a run of the plan."""

    cell: Cell
    status: RunStatus | Literal["interrupted", "not_begun"]
    """Status as `kopt runs` shows it."""
    outcome: RunOutcome | None
    """The outcome; None before the run has ended."""


def read_targets(plan: StudyPlan, settings: Settings) -> Mapping[str, float]:
    """Return the target speed of each kernel: infinite where it is a share of what is not known."""
    if not plan.is_share:
        return dict.fromkeys(plan.kernels, plan.target)
    best: dict[str, float] = {}
    for cell in plan.cells():
        with suppress(ToolError), view_run(cell.run, settings) as (reader, folder):
            if folder.name == cell.run:
                fastest = max((one.value for _, one in _speeds(reader)), default=0.0)
                best[cell.kernel] = max(fastest, best.get(cell.kernel, 0.0))
    return {name: plan.target * best[name] if best.get(name) else inf for name in plan.kernels}


def read_standing(cell: Cell, target: float, settings: Settings) -> RunStanding:
    """Return where the run of `cell` stands, and what it came to once it has ended."""
    nothing = RunStanding(cell=cell, status="not_begun", outcome=None)
    try:
        with view_run(cell.run, settings) as (reader, folder):
            if folder.name != cell.run:
                return nothing
            report = report_run(reader, folder)
            has_ended = reader.state().is_finished
            outcome = _outcome(reader, report, target) if has_ended else None
    except ToolError:  # it was not begun, or killed before it was
        return nothing
    return RunStanding(cell=cell, status=report.status, outcome=outcome)


def _outcome(reader: RunReader, report: RunReport, target: float) -> RunOutcome:
    speed, interval = _speed(reader, report)
    return RunOutcome(
        winner=report.winner,
        speed=speed,
        speed_interval=interval,
        provenance=Provenance.ESTIMATED if report.gpu is None else Provenance.MEASURED,
        baseline=report.baseline,
        ratio=_ratio(reader, report),
        target=_reach(reader, report, target),
        candidates=max(0, report.evaluated - 1),
        tokens=report.spend.tokens,
        usd=report.spend.cost_usd or 0.0,
        spent_s=report.spent_s,
        stop_detail=report.stop_detail,
    )


def _speed(reader: RunReader, report: RunReport) -> tuple[float | None, tuple[float, float] | None]:
    if report.gpu is None:
        return _ratio(reader, report), None
    if report.winner is not None:
        return report.best_speedup, report.best_speedup_interval
    speed = _start_speed(reader)
    return (None, None) if speed is None else (speed.value, (speed.low, speed.high))


def _ratio(reader: RunReader, report: RunReport) -> float | None:
    if report.winner is not None:
        return report.ratio
    return None if _start_speed(reader) is None else 1.0  # a start that fails is no kernel at all


def _start_speed(reader: RunReader) -> Speed | None:
    start = next(iter(reader.members()), None)
    return None if start is None else speed_of(start)


def _reach(reader: RunReader, report: RunReport, target: float) -> TargetReach:
    rows = [row for row in reader.table("evaluation") if row["finished_us"] is not None]
    hit = min(_hits(reader, rows, target), default=None)
    until_us, candidate = hit or (None, None)
    quick = [row for row in rows if row["level"] == "quick" and row["candidate"] > 0]
    calls = reader.calls()
    begun = [call for call in calls if until_us is None or call["started_us"] <= until_us]
    is_cut = report.stop_reason == "budget" or report.status == "budget"
    return TargetReach(
        ending="reached" if hit is not None else "cut" if is_cut else "never",
        candidate=candidate,
        candidates=sum(until_us is None or row["finished_us"] <= until_us for row in quick),
        tokens=sum(map(call_tokens, begun)),
        usd=known_usd(begun) or 0.0,
    )


def _hits(reader: RunReader, rows: list[Row], target: float) -> Iterator[tuple[int, int]]:
    """Yield when evaluations ended by which candidates reached the target, and their `seq`.

    One that a later check refuted did not.
    """
    finished = {(row["candidate"], row["level"]): row["finished_us"] for row in rows}
    for member, speed in _speeds(reader):
        if speed.low >= target:
            level = "tie" if member.timing is member.tie else "quick"
            yield finished[member.seq, level], member.seq


def _speeds(reader: RunReader) -> Iterator[tuple[Member, Speed]]:
    """Yield the speed of each candidate that nothing refuted: over the start on sim."""
    start = _start_speed(reader)
    if reader.state().settings.gpu is not None:
        unit = 1.0
    elif start is not None:
        unit = start.value
    else:
        return  # an estimate is told over the start, and that has none
    for member in unrefuted(reader.members()):
        speed = speed_of(member)
        if speed is not None:
            yield member, Speed(speed.value / unit, speed.low / unit, speed.high / unit)
