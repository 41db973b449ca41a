"""One candidate of a run as a record for people and programs: what was found out about it.

A part of the report of a run and of the result of a step.
"""

from collections.abc import Sequence
from typing import Literal

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status
from kopt.search.records.evaluation import MetricValue
from kopt.search.records.members import LineageKind, Member
from kopt.search.records.run_state import RunState
from kopt.search.selection.headroom import below_copy


class CandidateReport(Record):
    """One candidate of a run."""

    seq: int
    """Number within the run; 0 is the starting point."""
    candidate: str
    """Id of the source, 64 hex digits; tune choices of one source share it."""
    label: str
    """Its name wherever a model reads it: `r2b3`; its number if no model wrote it."""
    round: int
    tune: dict[str, int]
    family: str
    proposer: str
    parents: tuple[int, ...]
    lineage: LineageKind | Literal["start"]
    """Its relation to its parents."""
    status: Status | None
    """The status of the quick check; None while it is not finished."""
    summary: str
    latency_us: float | None
    provenance: Provenance
    """The provenance of `latency_us`."""
    speedup: float | None
    """Baseline time / candidate time from paired replays; None where nothing was measured. Of the
    longer measurement where one had to decide between two that were too close."""
    speedup_interval: tuple[float, float] | None
    """95 % interval."""
    below_copy: float | None = None
    """Its time / that of a plain copy of as many bytes where it is clearly faster, which is to be
    doubted; else None."""
    registers_per_thread: int | None
    same_program_as: int | None
    """An earlier candidate with the same cubins and launches."""
    full_status: Status | None
    """The status of the full check; None without one."""
    full_summary: str
    """The result of the full check in one line; why one that passed it is no winner."""
    in_beam: bool
    note: str
    """Why its author expected it to be faster; empty without a reason."""


def report_candidate(member: Member, members: Sequence[Member], state: RunState) -> CandidateReport:
    """Return what the run in `state` knows of `member`; `members` are all of the run."""
    quick, timing = member.quick, member.timing
    registers = None if quick is None else quick.registers
    return CandidateReport(
        seq=member.seq,
        candidate=member.source_sha,
        label=member.label,
        round=member.round,
        tune=member.tune,
        family=member.family,
        proposer=member.proposer,
        parents=member.parents,
        lineage=member.lineage if member.parents else "start",
        status=None if quick is None else quick.status,
        summary="" if quick is None else quick.summary,
        latency_us=member.latency_us,
        provenance=provenance_of(member),
        speedup=None if timing is None else number(timing.speedup),
        speedup_interval=None if timing is None else timing.speedup_interval,
        below_copy=below_copy(member),
        registers_per_thread=None if registers is None else int(registers),
        same_program_as=first_equal(member, members),
        full_status=None if member.proof is None else member.proof.status,
        full_summary="" if member.proof is None else member.proof.summary,
        in_beam=member.seq in state.beam,
        note=member.note,
    )


def first_equal(member: Member, members: Sequence[Member]) -> int | None:
    """Return the earliest candidate with the same cubins and launches; None if there is none."""
    if member.quick is None or member.quick.equivalence is None:
        return None
    for other in members[: member.seq]:
        if other.quick is not None and other.quick.equivalence == member.quick.equivalence:
            return other.seq
    return None


def number(value: MetricValue | None) -> float | None:
    """Return the number of a value; None where there is no value."""
    return None if value is None else value.value


def provenance_of(member: Member | None) -> Provenance:
    """Return how the time of a candidate came about."""
    latency = None if member is None or member.timing is None else member.timing.latency
    return Provenance.UNAVAILABLE if latency is None else latency.provenance


def ratio_words(ratio: float | None, interval: tuple[float, float] | None) -> str:
    """Return `1.213x (1.209 to 1.217)`; empty without a ratio."""
    if ratio is None:
        return ""
    spread = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
    return f"{ratio:.3f}x{spread}"
