"""What one step of a search is asked to do and hands back, and who is told while it works."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.best_known import BestKnown
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import Bottleneck
from kopt.kernels.record import Diagnostic, Record
from kopt.search.advice.suggestions import Suggestion
from kopt.search.records.budget import Budget
from kopt.search.records.members import StepCandidate
from kopt.search.records.run_state import Event, RunStatus
from kopt.search.reports.candidate_report import CandidateReport
from kopt.search.reports.run_report import RunHead, view_run
from kopt.search.selection.family_standing import FamilyStanding
from kopt.search.selection.retirement import Retirement

NextStep = Literal["fix", "write", "sweep", "finish", "verify", "new_run"]


class BeamMember(CandidateReport):
    """One candidate that the run keeps."""

    rank: int
    """From 1."""


class SteppedCandidate(CandidateReport):
    """One candidate of the step."""

    repeats: bool
    """True: the run knew the same source and tune values before, as this number."""
    diagnostic: Diagnostic | None
    """The first thing that was wrong with it, where a stage pointed at it."""


class StepResult(RunHead):
    """One step of a run."""

    schema_: Literal["kopt.step/1"] = Field(default="kopt.step/1", alias="schema")
    status: RunStatus
    """paused: the run can go on. done, budget, failed: it has ended; candidates open it again."""
    round: int | None
    """What the step evaluated or finished; None if nothing."""
    message: str
    """What the step did, in a sentence."""
    candidates: tuple[SteppedCandidate, ...]
    """The candidates of the step: the caller's in their order, else those of the round."""
    beam: tuple[BeamMember, ...]
    """Best first."""
    retired: tuple[Retirement, ...]
    """Who left the beam in this step, and who of its candidates never entered."""
    gain: float | None
    """By which fraction the step made the best faster: 0.03 for 3 %; None without a comparison."""
    families: tuple[FamilyStanding, ...]
    """The families that were tried, fastest first."""
    untried_families: tuple[str, ...]
    bottleneck: Bottleneck | None
    """The bottleneck of the winner or leader; its provenance says how it was found."""
    bottleneck_problem: str | None
    """Why there is none although a candidate leads."""
    suggestions: tuple[Suggestion, ...]
    """The most pressing first."""
    proposer_ideas: int
    """How many candidates kopt's own proposer would try in the next round; 0: a step without
    candidates puts the best to the full check and ends the run."""
    round_size: int
    """Most candidates of one step."""
    best_known: BestKnown | None = None
    """The fastest kernel that is known besides this run's, where it was looked for."""
    winner_tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The winner's tune values, which differ from the defaults of its source as handed in."""
    budget: str
    next: NextStep
    """fix: repair what failed. write: hand in candidates (see suggestions). sweep: step without
    candidates. finish: the same, which ends the run. verify: benchmark the winner. new_run: nothing
    has passed and nothing is left to do here."""


_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class StepRequest(Record):
    """One round of a run: the caller's candidates, or those of kopt's own proposer."""

    kernel: str | None = None
    """Begins a new run from this kernel's reference; exactly one of `kernel` and `run_id`."""
    run_id: str | None = None
    """The run to go on with, however it was driven before: its id or an unmistakable part."""
    candidates: tuple[StepCandidate, ...] = ()
    """They form one round as given; empty: the proposer fills it."""
    device: str = "auto"
    """auto, sim, sim:GPU or cuda:N, as `step_device` resolves it."""
    arch: str | None = None
    """The compiler target of a new run on sim; None: the default. A GPU has its own."""
    budget: Budget | None = None
    """The budget of a new run, or a larger one for an old run."""
    rounds: int = Field(default=12, ge=1)
    """The rounds of a new run: after so many, a step without candidates ends it. The caller's own
    candidates are evaluated beyond it too."""
    key: str | None = None
    """The caller's name for this very step: the same key again finishes the same step instead of
    beginning another. With `kernel` it also names the run."""
    owner: str = ""
    """The owner of a new run; "": the local owner."""
    counters: bool = True
    """Whether a GPU's counters are read for the leader, where they can be: seconds."""
    lock_wait_s: float = Field(default=600.0, ge=0.0)
    """How long to wait while another process works on the run."""


def run_of_key(key: str) -> str:
    """Return the id of the run that a step with this key begins."""
    return f"run-{key.removeprefix('job-')}"


@dataclass(frozen=True)
class StepHooks:
    """Who is told while a step works."""

    on_past: Callable[[Sequence[Event]], None] = ignore
    """Once, before all others: the events of earlier steps."""
    on_event: Callable[[Event], None] = ignore
    """Every event of the run, after it was committed."""
    on_run: Callable[[str], None] = ignore
    """The run's id, once it is locked and the step can be carried out."""
    say: Callable[[str], None] = ignore
    """What goes on besides: who holds the run, that the leader is profiled."""


def step_device(request: StepRequest, settings: Settings) -> str:
    """Return the device to open for a step: what was asked for, else that of its run.

    Raises:
        ToolError: The request names no kernel or run, or an unknown one; before any waiting.
    """
    if request.kernel is None and request.run_id is None:
        raise ToolError("name a kernel, which begins a new run, or a run to go on with")
    if request.kernel is not None and request.run_id is not None:
        raise ToolError(
            "a kernel begins a new run, and a run is one to go on with: name one of them, not both"
        )
    if request.key is not None and not _KEY.fullmatch(request.key):
        raise ToolError(f"step key {request.key[:80]!r}: up to 64 of a-z, 0-9 and -")
    if request.kernel is not None:
        find_kernel(request.kernel, settings.problems)
        return request.device
    with view_run(request.run_id or "", settings) as (reader, _):
        return reader.state().settings.device_for(request.device)
