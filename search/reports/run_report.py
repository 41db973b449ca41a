"""A run as a record for people and programs: `kopt runs`, `kopt runs show`, `kopt run --json`.

Every time carries its provenance; on `sim` that is `estimated`, and nothing here calls it faster.
On a GPU the speedups decide, which are ratios of paired replays.
"""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.best_known import BestKnown
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Verdict
from kopt.search.advice.retrieval_log import Retrieval, read_retrievals
from kopt.search.forecast.expectations import agent_rounds
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member
from kopt.search.records.run_state import RunState, RunStatus, StopReason
from kopt.search.selection.headroom import copy_us_of
from kopt.search.selection.ranking import rank
from kopt.search.storage.artifacts import artifacts_of
from kopt.search.store.run_folders import find_run
from kopt.search.store.run_lock import is_run_locked
from kopt.search.store.run_reader import RunReader
from kopt.search.store.schema import open_viewer, unreadable
from kopt.search.store.store import FILE_NAME
from kopt.search.store.winner import winner_path

from .candidate_report import CandidateReport, number, provenance_of, report_candidate
from .history import (
    Decision,
    Lessons,
    LostBranch,
    RoundFigures,
    judgements,
    lost_branches,
    read_lessons,
    read_rounds,
)
from .memory import MemoryUse, read_memory
from .pace import Pace, measure_pace
from .spending import SpendFigures, sum_spend


class WinnerTime(Record):
    """The winner at one workload that it claims, from the final benchmark."""

    workload: str
    latency_us: float
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    baseline: str | None


class RunHead(Record):
    """What is said of a run whenever one is told of: in a list, in its report, after a step."""

    run: str
    """Its id."""
    kernel: str
    device: str
    gpu: DeviceFacts | None
    """The GPU that it is measured on; None on sim, where all times are estimates."""
    arch: str
    spent_s: float
    """Wall seconds of the processes that drove it."""
    baseline: str | None
    """What candidates are timed against; None on sim."""
    winner: int | None
    """`seq` of the candidate that passed the full check."""
    winner_path: str | None
    """Its source, with the winning tune values as defaults."""
    stop_reason: StopReason | None
    stop_detail: str | None


class RunFacts(RunHead):
    """What is said of every run."""

    status: RunStatus | Literal["interrupted"]
    """`interrupted`: no process drives it, although it was not paused; it can be resumed."""
    folder: str
    """Where its files lie: report.html, report.md, winner.cu."""
    problems: str | None = None
    """The folder of the user's own problems that its kernel is of; None for a packaged one."""
    created_us: int = Field(ge=0, lt=1 << 53)
    """Unix microseconds."""
    candidates: int
    evaluated: int
    start_latency_us: float | None
    best_latency_us: float | None
    """The time of the winner; of the leader while there is none."""
    provenance: Provenance
    """The provenance of both latencies."""
    ratio: float | None
    """How many times as fast as the start the best is. Measured: the quotient of their speedups
    against the same baseline. Estimated: that of their times, which is no measured speedup."""
    best_speedup: float | None
    """The speedup of the winner in its final benchmark; of the leader while there is none."""
    best_speedup_interval: tuple[float, float] | None
    """95 % interval."""
    plain_copy_us: float | None = None
    """The time of the fastest plain copy of as many bytes on the GPU, measured; None on sim."""
    spend: SpendFigures
    """What its model calls cost."""
    is_paid: bool = True
    """Whether that is paid; not where a script or a recording answered in Claude's place."""


def run_head(state: RunState, folder: Path) -> dict[str, Any]:
    """Return the fields of `RunHead`, but for the baseline."""
    run = state.settings
    return {
        "run": state.id,
        **{name: getattr(run, name) for name in ("kernel", "device", "gpu", "arch")},
        **{name: getattr(state, name) for name in ("spent_s", "winner", "stop_reason")},
        "stop_detail": state.stop_detail,
        "winner_path": None if state.winner is None else str(winner_path(folder)),
    }


class RunReport(RunFacts):
    """One run with its candidates."""

    schema_: Literal["kopt.run/1"] = Field(default="kopt.run/1", alias="schema")
    candidate: str | None
    """Id of the winner's source."""
    winner_tune: dict[str, int] | None
    winner_times: tuple[WinnerTime, ...]
    """The named workload first; empty on sim and while there is no winner."""
    seed: int
    beam_width: int
    rounds: int
    """Most rounds before the merge and the sweep."""
    strategy: str
    """beam or maic_rl."""
    budget: str
    larger_budget: str
    """Twice its budget, as `--budget` takes it; empty without a limit."""
    ranking: tuple[int, ...]
    """`seq` of all that passed, best first, the same program once."""
    population: tuple[CandidateReport, ...]
    """Every candidate, by `seq`."""
    verdicts: dict[int, Verdict]
    """By `seq`: what the benchmark said of the speed of each that was measured."""
    round_figures: tuple[RoundFigures, ...]
    lessons: tuple[Lessons, ...]
    """What the reflector said that each round has taught."""
    memory: MemoryUse | None
    """States, predictions and results of its steps; None where nothing was learned."""
    lost: tuple[LostBranch, ...]
    """Hypotheses that led to no candidate that passed."""
    judgements: tuple[Decision, ...]
    """What became of merges and promotions."""
    pace: Pace
    retrievals: tuple[Retrieval, ...]
    """What was searched and read in documents for it, oldest first."""
    best_known: BestKnown | None = None
    """The best kernel that ships for its kernel id; looked for where a run ends, not afterwards."""


@contextmanager
def view_run(text: str, settings: Settings) -> Generator[tuple[RunReader, Path]]:
    """Yield a read-only reader of the run that `text` names, and the run's folder.

    Works while another process drives the run, and does not disturb it.

    Raises:
        ToolError: No such run, or none that began.
        SetupError: The run is damaged, or was written by a newer kopt.
    """
    folder = find_run(text, settings)
    connection = open_viewer(folder / FILE_NAME)
    try:
        reader = RunReader(connection, artifacts_of(settings.home))
        if not reader.run_exists():
            raise ToolError(f"{folder.name} was killed before it began; there is nothing to show")
        yield reader, folder
    finally:
        connection.close()


def report_run(reader: RunReader, folder: Path) -> RunReport:
    """Return all that is known of the run in `folder`."""
    state = reader.state()
    members = reader.members()
    facts = run_facts(reader, members, folder)
    winner = None if state.winner is None else members[state.winner]
    return RunReport(
        **facts,
        candidate=None if winner is None else winner.source_sha,
        winner_tune=None if winner is None else winner.tune,
        winner_times=_winner_times(winner),
        seed=state.settings.seed,
        beam_width=state.settings.search.beam.width,
        rounds=len(agent_rounds(state.settings.search, at_most=True)),
        strategy=state.settings.search.strategy,
        budget=str(state.settings.budget),
        larger_budget=state.settings.budget.doubled().written,
        ranking=tuple(member.seq for member in rank(members)),
        population=tuple(report_candidate(member, members, state) for member in members),
        verdicts=_verdicts(reader, members),
        round_figures=read_rounds(reader, members),
        lessons=read_lessons(reader),
        memory=read_memory(reader),
        lost=lost_branches(reader),
        judgements=judgements(reader.events()),
        pace=measure_pace(reader),
        retrievals=read_retrievals(folder),
    )


def run_facts(reader: RunReader, members: Sequence[Member], folder: Path) -> dict[str, Any]:
    """Return the fields of `RunFacts`.

    Raises:
        SetupError: The run's file is damaged.
    """
    if (reader.state().winner or 0) >= max(1, len(members)):
        raise unreadable(folder / FILE_NAME, LookupError("its winner is no candidate of it"))
    state, leaders = reader.state(), rank(members)
    best = members[state.winner] if state.winner is not None else next(iter(leaders), None)
    start = members[0] if members else None
    speed = None if best is None else _final(best)
    ratio = start.cost / best.cost if start and best and start.cost and best.cost else None
    abandoned = state.status == "running" and not is_run_locked(folder)
    return {
        "status": "interrupted" if abandoned else state.status,
        **run_head(state, folder),
        "folder": str(folder),
        "problems": state.settings.problems,
        "created_us": state.created_us,
        "candidates": len(members),
        "evaluated": sum(member.quick is not None for member in members),
        "start_latency_us": None if start is None else start.latency_us,
        "best_latency_us": None if speed is None else number(speed.latency),
        "provenance": provenance_of(best),
        "ratio": ratio,
        "plain_copy_us": copy_us_of(members),
        "spend": sum_spend(reader.calls(), ratio),
        "is_paid": state.settings.is_paid,
        "baseline": None if speed is None or speed.speedup is None else speed.speedup.unit,
        "best_speedup": None if speed is None else number(speed.speedup),
        "best_speedup_interval": None if speed is None else speed.speedup_interval,
    }


def _final(member: Member) -> Evaluation | None:
    """Return the evaluation that says most about speed: the final benchmark where there is one."""
    timed = member.full is not None and member.full.speedup is not None
    return member.full if timed else member.timing


def _verdicts(reader: RunReader, members: Sequence[Member]) -> dict[int, Verdict]:
    """Return what the benchmark said of each candidate, in the measurement that counts."""
    found: dict[int, Verdict] = {}
    for member in members:
        sha = None if member.timing is None else member.timing.artifacts.get("bench")
        verdict = None if sha is None else json.loads(reader.blob(sha)).get("verdict")
        if verdict is not None:
            found[member.seq] = Verdict(verdict)
    return found


def _winner_times(winner: Member | None) -> tuple[WinnerTime, ...]:
    full = None if winner is None else winner.full
    if full is None or full.speedup is None:
        return ()
    times: list[WinnerTime] = []
    for workload in dict.fromkeys(value.workload for value in full.values):
        part = full.model_copy(
            update={"values": tuple(v for v in full.values if v.workload == workload)}
        )
        if part.latency is not None and part.latency.value is not None:
            times.append(
                WinnerTime(
                    workload=workload,
                    latency_us=part.latency.value,
                    speedup=number(part.speedup),
                    speedup_interval=part.speedup_interval,
                    baseline=None if part.speedup is None else part.speedup.unit,
                )
            )
    return tuple(times)
