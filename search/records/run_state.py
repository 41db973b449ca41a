"""What a run is made of besides its candidates: settings, state, events."""

from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import Field, model_validator

from kopt.config.device_names import SIM, asks_for_simulator, is_elsewhere, is_simulated
from kopt.config.errors import ToolError
from kopt.config.search_settings import (
    SearchSettings,
    complete_settings,
    load_search_settings,
)
from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record

from .budget import UNLIMITED, Budget
from .members import LineageKind

RunStatus = Literal["running", "paused", "done", "failed", "budget"]
StopReason = Literal["early_stop", "rounds", "exhausted", "roofline", "headroom", "budget"]
RoundKind = Literal["start", "agents", "rollouts", "generated", "sweep", "step", "combine", "tune"]
BranchState = Literal["open", "delivered", "failed"]
_OLD_SETTINGS = ("beam_width", "rounds", "early_stop_min_improvement")


class RunTarget(Record):
    """What a run searches for, where and how."""

    kernel: str
    """Kernel id."""
    device: str = "sim"
    """sim, sim:GPU, cuda:N as it was counted when the run began, or one of another machine."""
    gpu: DeviceFacts | None = None
    """The GPU that every candidate is timed on, of a pool the first of its model; None on sim,
    where times are estimates."""
    arch: str = DEFAULT_ARCH
    seed: int = 0
    search: SearchSettings = Field(default_factory=load_search_settings)
    """The settings of the search and of the models that it asks."""
    budget: Budget = UNLIMITED
    asks_models: bool = True
    """False: no model is asked, at a resume neither, whatever key there is then."""
    is_paid: bool = True
    """Whether its model calls are paid for; not where a script or a recording answered them all."""

    def device_for(self, asked: str) -> str:
        """Return the device to open to go on: its own for `auto`, and for `sim` its simulator.

        Raises:
            ToolError: It has estimates for one GPU, and those for another are asked for.
        """
        is_sim = is_simulated(self.device)
        if asked == "auto" or (is_sim and asked == SIM):
            return self.device
        simulator = SIM if is_elsewhere(asked) else asked  # there it stands for no GPU
        if is_sim and asks_for_simulator(asked) and simulator != self.device:
            raise ToolError(
                f"the run has estimates of {self.device}, not of {asked}: go on with --device"
                f" {self.device}, or begin a new run"
            )
        return asked


class RunSettings(RunTarget):
    """What a run was asked to do; fixed at its start, but for a larger budget at a resume."""

    problem_sha: str
    """Digest of the problem's definition and oracle: a run is not resumed against another one."""
    start_sha: str
    """Digest of the source that the search starts from."""
    start_name: str
    """The file name of that source."""
    problems: str | None = None
    """The folder that a problem of the user's own was found in; None for a packaged one."""

    @model_validator(mode="before")
    @classmethod
    def _of_an_older_run(cls, data: Any) -> Any:
        """Take the settings of a run that was begun before `search` held them all."""
        if not isinstance(data, dict):
            return data  # pyright: ignore[reportUnknownVariableType] - pydantic refuses it
        old = cast(dict[str, Any], data)
        if "search" in old:
            kept = old["search"]
            if not isinstance(kept, dict):
                return old
            return old | {"search": complete_settings(cast(dict[str, Any], kept))}
        known = {key: value for key, value in old.items() if key not in _OLD_SETTINGS}
        search = load_search_settings().with_beam(old.get("beam_width"), old.get("rounds"))
        gain = old.get("early_stop_min_improvement", search.early_stop_min_improvement)
        return known | {"search": search.model_copy(update={"early_stop_min_improvement": gain})}


class BranchPlan(Record):
    """One candidate that an agents' round is to have written."""

    slot: str
    """Why it has a place in the round (`agents/slots.py`)."""
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
    """The planner's document, in an agents' round; what was drawn, in one of trajectories."""
    reflection_sha: str | None
    """The reflector's document; None before it answered, and in other rounds."""
    samples_sha: str | None = None
    """What the round has taught the knowledge base (`Samples`); None before it was asked."""
    update_sha: str | None = None
    """What the learner changed in the knowledge base after the round; None without a change."""


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
    CALL_RETRIED = "call_retried"
    CALL_DONE = "call_done"
    BUDGET_BEGUN = "budget_begun"
    BUDGET_WARNING = "budget_warning"
    EVALUATION_QUEUED = "evaluation_queued"
    REFLECTED = "reflected"
    LEARNED = "learned"
    MEMORY_UPDATED = "memory_updated"
    COMBINED = "combined"
    FINAL_CHECK = "final_check"
    SOFT_VERIFIED = "soft_verified"
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
    documents_sha: str | None = None
    """The passages that the agents are given; None before any was asked."""
    knowledge_sha: str | None = None
    """The knowledge base as it was when the run began; None without memory."""
    tool_gpu_seconds: float = 0.0
    """How long profiles and the tools of the agents held the GPU."""
    spent_s: float
    """Wall seconds of the processes that drove the run."""
    kopt_version: str
    created_us: int
    finished_us: int | None

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do (with a larger budget there may be again)."""
        return self.status in ("done", "failed", "budget")
