"""The candidates of a run as rows: their order, their cells, what is remarked on each.

For any form of page: nothing here is escaped yet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .candidate_report import CandidateReport
from .run_report import RunReport
from .sections import Table, Yardstick, yardstick_of

HEADS = (
    *("Candidate", "Speed#", "Time#", "Status", "Verdict", "Registers#"),
    *("Round#", "From", "Family", "Tune"),
)
_ORDER = (
    "Best first; below each the candidates that are the same program, which count once; then those"
    " that did not pass."
)


@dataclass(frozen=True)
class CandidateRow:
    """One candidate as a row."""

    entry: CandidateReport
    cells: tuple[str, ...]
    """One for each of the columns that are shown."""
    remark: str
    """Why it counts for nothing, what its check said, why its author expected it to be faster."""
    is_winner: bool

    @property
    def kind(self) -> str:
        """What sets it apart: best, same, failed, or nothing."""
        if self.is_winner:
            return "best"
        if self.entry.status not in (None, "passed"):
            return "failed"
        return "" if self.entry.same_program_as is None else "same"


@dataclass(frozen=True)
class CandidateRows:
    """All candidates of a run in the order in which they are shown."""

    heads: tuple[str, ...]
    """Columns without any content are left out."""
    rows: tuple[CandidateRow, ...]
    caption: str
    """What the numbers are, and the order."""


def candidate_rows(report: RunReport) -> CandidateRows:
    """Return a row for each candidate of a run."""
    yardstick = yardstick_of(report)
    ordered = _in_order(report)
    cells = [tuple(_cells(entry, report, yardstick)) for entry in ordered]
    shown = [any(column) for column in zip(*cells, strict=True)] or [True] * len(HEADS)
    rows = tuple(
        CandidateRow(
            entry=entry,
            cells=tuple(cell for cell, is_shown in zip(row, shown, strict=True) if is_shown),
            remark=_remark(entry, report.winner),
            is_winner=entry.seq == report.winner,
        )
        for entry, row in zip(ordered, cells, strict=True)
    )
    heads = tuple(head for head, is_shown in zip(HEADS, shown, strict=True) if is_shown)
    provenance = "estimated" if report.gpu is None else "measured"
    caption = f"Speed: {yardstick.words}. Time: us, {provenance}. {_ORDER}"
    return CandidateRows(heads, rows, caption)


def candidate_table(report: RunReport) -> Table:
    """Return the rows with their remarks in a column of its own."""
    found = candidate_rows(report)
    rows = tuple((*row.cells, row.remark) for row in found.rows)
    return Table((*found.heads, "Remark"), rows, found.caption)


def _in_order(report: RunReport) -> Sequence[CandidateReport]:
    """Return the candidates by the rank of their program, its leader first; the others behind."""
    programs = {seq: _program(report.population[seq]) for seq in report.ranking}
    place = {program: index for index, program in enumerate(programs.values())}

    def key(entry: CandidateReport) -> tuple[int, bool, int]:
        passed = entry.status == "passed"
        rank = place.get(_program(entry), len(place)) if passed else len(place) + 1
        return rank, entry.seq not in programs, entry.seq

    return sorted(report.population, key=key)


def _program(entry: CandidateReport) -> int:
    """Return the number of the first candidate that is the same program."""
    return entry.seq if entry.same_program_as is None else entry.same_program_as


def _cells(entry: CandidateReport, report: RunReport, yardstick: Yardstick) -> Iterator[str]:
    """Yield one cell for each of `HEADS`."""
    parents = " ".join(f"#{parent}" for parent in entry.parents)
    winner = " winner" if entry.seq == report.winner else ""
    yield f"#{entry.seq}{'' if entry.label == str(entry.seq) else f' {entry.label}'}{winner}"
    yield yardstick.told(entry)
    yield "" if entry.latency_us is None else f"{entry.latency_us:.3f}"
    yield _status_words(entry)
    yield report.verdicts.get(entry.seq, "")
    yield "" if entry.registers_per_thread is None else str(entry.registers_per_thread)
    yield str(entry.round)
    yield f"{entry.lineage} {parents}".strip()
    yield entry.family
    yield ", ".join(f"{name}={value}" for name, value in entry.tune.items())


def _status_words(entry: CandidateReport) -> str:
    """Return `passed`, and what the full check said where one was made."""
    if entry.status is None:
        return "not evaluated"
    if entry.full_status is None:
        return entry.status
    if entry.full_status == entry.status:
        return f"{entry.status} (full check)"
    return f"{entry.status}; full check: {entry.full_status}"


def _remark(entry: CandidateReport, winner: int | None) -> str:
    same = "" if entry.same_program_as is None else f"same program as #{entry.same_program_as}"
    below = entry.below_copy
    doubt = "" if below is None else f"doubt: {below:.2f} of the time of a plain copy"
    summary = entry.summary if entry.status != "passed" else ""
    full = entry.full_summary if entry.seq != winner else ""
    return " · ".join(part for part in (same or summary, doubt, full, entry.note) if part)
