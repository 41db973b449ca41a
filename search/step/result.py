"""The result of one step of a search: how the run stands, what was done, what to try next."""

from typing import Literal

from pydantic import Field

from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.profile_result import Bottleneck
from kopt.kernels.record import Diagnostic, Record
from kopt.search.advice.suggestions import Suggestion
from kopt.search.records.run_state import RunStatus, StopReason
from kopt.search.reports.candidate_report import CandidateReport
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


class StepResult(Record):
    """One step of a run."""

    schema_: Literal["kopt.step/1"] = Field(default="kopt.step/1", alias="schema")
    status: RunStatus
    """paused: the run can go on. done, budget, failed: it has ended; candidates open it again."""
    run: str
    """Its id."""
    kernel: str
    device: str
    gpu: DeviceFacts | None
    """The GPU; None on sim, where all times are estimates."""
    arch: str
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
    baseline: str | None
    """What speedups compare with; None on sim."""
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
    stop_reason: StopReason | None
    stop_detail: str | None
    winner: int | None
    """`seq` of the candidate that passed the full check, once the run has ended."""
    winner_tune: dict[str, int] = Field(default_factory=dict[str, int])
    """Its tune values, which differ from the defaults of its source as it was handed in."""
    winner_path: str | None
    """Its source, with the winning tune values as defaults."""
    spent_s: float
    budget: str
    next: NextStep
    """fix: mend what failed. write: hand in candidates (see suggestions). sweep: step without
    candidates. finish: the same, which ends the run. verify: benchmark the winner. new_run: nothing
    has passed and nothing is left to do here."""
