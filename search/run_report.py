"""A run as a record for people and programs: `kopt runs`, `kopt runs show`, `kopt run --json`.

Every time carries its provenance; on `sim` that is `estimated`, and nothing here calls it faster.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from kopt.config.errors import KoptError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status

from .artifacts import open_artifacts
from .beam import rank
from .loop import winner_path
from .proposer import Member
from .run_folders import find_run, run_folders
from .run_lock import is_run_locked
from .run_reader import RunReader
from .run_records import RunState, RunStatus, StopReason
from .schema import open_viewer
from .store import FILE_NAME

logger = logging.getLogger(__name__)


class CandidateReport(Record):
    """One candidate of a run."""

    seq: int
    """Number within the run; 0 is the starting point."""
    candidate: str
    """Id of the source, 64 hex digits; tune choices of one source share it."""
    round: int
    tune: dict[str, int]
    family: str
    proposer: str
    parents: tuple[int, ...]
    status: Status | None
    """Of the quick check; None while it is not finished."""
    summary: str
    latency_us: float | None
    provenance: Provenance
    """Of `latency_us`."""
    registers_per_thread: int | None
    same_program_as: int | None
    """An earlier candidate with the same cubins and launches."""
    full_status: Status | None
    """Of the full check; None for all who were not put to it."""
    in_beam: bool


class RunFacts(Record):
    """What is said of every run."""

    status: RunStatus | Literal["interrupted"]
    """`interrupted`: no process drives it, although it was not paused; it can be resumed."""
    run: str
    kernel: str
    device: str
    arch: str
    created_us: int
    """Unix microseconds."""
    spent_s: float
    """Wall seconds of the processes that drove it."""
    candidates: int
    evaluated: int
    start_latency_us: float | None
    best_latency_us: float | None
    """Of the winner; of the leader while there is none."""
    provenance: Provenance
    """Of both latencies."""
    ratio: float | None
    """Start latency / best latency. Of estimated latencies it is no measured speedup."""
    winner: int | None
    """`seq` of the candidate that passed the full check."""
    winner_path: str | None
    """Its source, with the winning tune values as defaults."""
    stop_reason: StopReason | None
    stop_detail: str | None


class RunSummary(RunFacts):
    """One run of a list."""

    schema_: Literal["kopt.run-summary/1"] = Field(default="kopt.run-summary/1", alias="schema")


class RunReport(RunFacts):
    """One run with its candidates."""

    schema_: Literal["kopt.run/1"] = Field(default="kopt.run/1", alias="schema")
    candidate: str | None
    """Id of the winner's source."""
    winner_tune: dict[str, int] | None
    seed: int
    beam_width: int
    rounds: int
    budget: str
    ranking: tuple[int, ...]
    """`seq` of all that passed, best first, the same program once."""
    population: tuple[CandidateReport, ...]
    """Every candidate, by `seq`."""


@contextmanager
def view_run(text: str, settings: Settings) -> Generator[tuple[RunReader, Path]]:
    """Yield a read-only reader of the run that `text` names, and the run's folder.

    Works while another process drives the run, and does not disturb it.

    Raises:
        ToolError: No such run, or none that began.
        SetupError: The run was written by a newer kopt.
    """
    folder = find_run(text, settings)
    connection = open_viewer(folder / FILE_NAME)
    try:
        reader = RunReader(connection, open_artifacts(settings.home))
        if not reader.run_exists():
            raise ToolError(f"{folder.name} was killed before it began; there is nothing to show")
        yield reader, folder
    finally:
        connection.close()


def list_runs(settings: Settings) -> tuple[RunSummary, ...]:
    """Return every run of this KOPT_HOME, newest first.

    A run that cannot be read is left out with a warning, so that it does not hide the others;
    a folder whose process was killed before it began a run is left out without.
    """
    summaries: list[RunSummary] = []
    for folder in run_folders(settings):
        try:
            with view_run(folder.name, settings) as (reader, _):
                facts = _facts(reader.state(), reader.members(), folder)
                summaries.append(RunSummary(**facts))
        except ToolError:
            continue
        except KoptError as error:
            logger.warning("%s", error)
    return tuple(summaries)


def report_run(reader: RunReader, folder: Path) -> RunReport:
    """Return all that is known of the run in `folder`."""
    state = reader.state()
    members = reader.members()
    winner = None if state.winner is None else members[state.winner]
    return RunReport(
        **_facts(state, members, folder),
        candidate=None if winner is None else winner.source_sha,
        winner_tune=None if winner is None else winner.tune,
        seed=state.settings.seed,
        beam_width=state.settings.beam_width,
        rounds=state.settings.rounds,
        budget=str(state.settings.budget),
        ranking=tuple(member.seq for member in rank(members)),
        population=tuple(_candidate(member, members, state) for member in members),
    )


def _facts(state: RunState, members: Sequence[Member], folder: Path) -> dict[str, Any]:
    leaders = rank(members)
    best = members[state.winner] if state.winner is not None else next(iter(leaders), None)
    start_us = members[0].latency_us if members else None
    best_us = None if best is None else best.latency_us
    abandoned = state.status == "running" and not is_run_locked(folder)
    return {
        "status": "interrupted" if abandoned else state.status,
        "run": state.id,
        "kernel": state.settings.kernel,
        "device": state.settings.device,
        "arch": state.settings.arch,
        "created_us": state.created_us,
        "spent_s": state.spent_s,
        "candidates": len(members),
        "evaluated": sum(member.quick is not None for member in members),
        "start_latency_us": start_us,
        "best_latency_us": best_us,
        "provenance": _provenance(best),
        "ratio": start_us / best_us if start_us and best_us else None,
        "winner": state.winner,
        "winner_path": None if state.winner is None else str(winner_path(folder)),
        "stop_reason": state.stop_reason,
        "stop_detail": state.stop_detail,
    }


def _candidate(member: Member, members: Sequence[Member], state: RunState) -> CandidateReport:
    quick = member.quick
    registers = None if quick is None else quick.registers
    return CandidateReport(
        seq=member.seq,
        candidate=member.source_sha,
        round=member.round,
        tune=member.tune,
        family=member.family,
        proposer=member.proposer,
        parents=member.parents,
        status=None if quick is None else quick.status,
        summary="" if quick is None else quick.summary,
        latency_us=member.latency_us,
        provenance=_provenance(member),
        registers_per_thread=None if registers is None else int(registers),
        same_program_as=_first_equal(member, members),
        full_status=None if member.full is None else member.full.status,
        in_beam=member.seq in state.beam,
    )


def _first_equal(member: Member, members: Sequence[Member]) -> int | None:
    if member.quick is None or member.quick.equivalence is None:
        return None
    for other in members[: member.seq]:
        if other.quick is not None and other.quick.equivalence == member.quick.equivalence:
            return other.seq
    return None


def _provenance(member: Member | None) -> Provenance:
    latency = None if member is None or member.quick is None else member.quick.latency
    return Provenance.UNAVAILABLE if latency is None else latency.provenance
