"""What a run is made of besides its candidates: settings, state, events."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record

from .budget import UNLIMITED, Budget
from .proposer import LineageKind

RunStatus = Literal["running", "paused", "done", "failed", "budget"]
StopReason = Literal["early_stop", "rounds", "exhausted", "budget"]
RoundKind = Literal["start", "agents", "sweep", "step", "combine", "tune"]
BranchState = Literal["open", "delivered", "failed"]


def round_size(beam_width: int) -> int:
    """Return the most candidates of one round: per beam place one refinement and two children."""
    return 3 * beam_width


class RunSettings(Record):
    """What a run was asked to do; fixed at its start, but for a larger budget at a resume."""

    kernel: str
    """Kernel id."""
    problem_sha: str
    """Digest of the problem's definition and oracle: a run is not resumed against another one."""
    start_sha: str
    """Digest of the source that the search starts from."""
    start_name: str
    """Its file name."""
    device: str
    """sim, or cuda:N as it was counted when the run began."""
    gpu: DeviceFacts | None = None
    """The GPU that every candidate is timed on; None on sim, where times are estimates."""
    arch: str = DEFAULT_ARCH
    seed: int = 0
    beam_width: int = Field(default=4, gt=0)
    """Candidates kept after each round."""
    rounds: int = Field(default=4, ge=0)
    """Rounds after the first, which evaluates the starting point only."""
    early_stop_min_improvement: float = Field(default=0.03, ge=0.0)
    """The search ends after a round that gains less than this fraction."""
    budget: Budget = UNLIMITED

    @property
    def round_size(self) -> int:
        """Most candidates of one round."""
        return round_size(self.beam_width)


class BranchPlan(Record):
    """One candidate that an agents' round is to have written."""

    slot: str
    """Why it has a place in the round (`slots.py`)."""
    lineage: LineageKind
    parents: tuple[int, ...] = ()
    """`seq` of the candidates to start from, the skeleton first."""
    hypothesis: dict[str, Any]
    """The planner's hypothesis as JSON (`agents/plans.py`)."""


class BranchRow(BranchPlan):
    """A branch as it stands in the store."""

    id: str
    """`r2/b3`: what the ids of its model calls begin with."""
    round: int
    ordinal: int
    """From 0, in the order of the plan."""
    state: BranchState
    candidate: int | None
    """`seq` of what it delivered; None while it is open, and where it failed without one."""
    why: str | None
    """Why it failed."""


class RoundRow(Record):
    """A round as it stands in the store."""

    number: int
    kind: RoundKind
    plan_sha: str | None
    """The planner's document, in an agents' round."""
    reflection_sha: str | None
    """The reflector's document; None before it answered, and in other rounds."""


class EventKind(StrEnum):
    """What an event tells."""

    RUN_STARTED = "run_started"
    RUN_RESUMED = "run_resumed"
    ROUND_STARTED = "round_started"
    EVALUATION_STARTED = "evaluation_started"
    EVALUATION_DONE = "evaluation_done"
    EVALUATION_REQUEUED = "evaluation_requeued"
    RESULT_DROPPED = "result_dropped"
    ROUND_DONE = "round_done"
    PLAN_MADE = "plan_made"
    BRANCH_STARTED = "branch_started"
    BRANCH_ENDED = "branch_ended"
    CANDIDATE_ADDED = "candidate_added"
    CALL_STARTED = "call_started"
    CALL_DONE = "call_done"
    EVALUATION_QUEUED = "evaluation_queued"
    REFLECTED = "reflected"
    FINAL_CHECK = "final_check"
    PROMOTED = "promoted"
    DOCUMENT_ADDED = "document_added"
    RUN_PAUSED = "run_paused"
    RUN_FINISHED = "run_finished"


class Event(Record):
    """One line of the run's append-only feed."""

    seq: int
    """From 1, without gaps."""
    at_us: int
    """Unix microseconds."""
    kind: EventKind
    data: dict[str, Any]


class RunState(Record):
    """The run as it stands in its store."""

    id: str
    settings: RunSettings
    status: RunStatus
    round: int
    """Last round that was begun; -1 before the first."""
    round_open: bool
    """Whether that round still waits for its selection."""
    beam: tuple[int, ...]
    """`seq` of the kept candidates, best first."""
    stop_reason: StopReason | None
    stop_detail: str | None
    """The stop in words, with the numbers behind it."""
    winner: int | None
    """`seq` of the best candidate that passed the full check."""
    spent_s: float
    """Wall seconds of the processes that drove the run."""
    kopt_version: str
    created_us: int
    finished_us: int | None

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do (with a larger budget there may be again)."""
        return self.status in ("done", "failed", "budget")
