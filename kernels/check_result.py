"""What the correctness stage found: per workload, and the first mismatch in words."""

from typing import ClassVar, Literal

from pydantic import Field

from .compile_result import CompileResult
from .counters import ExecutionCounters
from .device_facts import DeviceFacts
from .record import Diagnostic, Record, SparseRecord
from .status import Status

SanitizerTool = Literal["memcheck", "initcheck", "racecheck", "synccheck"]
SANITIZER_TOOLS: tuple[SanitizerTool, ...] = ("memcheck", "initcheck", "racecheck", "synccheck")


class SanitizerRun(Record):
    """One run under one tool."""

    tool: SanitizerTool
    outcome: Literal["passed", "findings", "unavailable", "timeout"]
    """passed: the tool saw every launch to its end and found nothing. unavailable: it did not
    judge, which says nothing about the candidate."""
    status: Status
    """passed unless there are findings; of these the first, as the candidate's status."""
    findings: tuple[Diagnostic, ...] = ()
    """Errors, then warnings, each once for its line with the number of its like."""
    reason: str | None = None
    """Why it is unavailable and what to do, one line."""
    log_path: str | None = None
    """What the tool said, whole."""
    sandbox: str | None = None
    elapsed_s: float


class SanitizerResult(Record):
    """The result of all tools that were asked for, on the candidate's named workload."""

    schema_: Literal["kopt.sanitizer/1"] = Field(default="kopt.sanitizer/1", alias="schema")
    status: Status
    """The status of the first tool with findings, in the order of `SANITIZER_TOOLS`; passed if none
    found anything. `is_complete` says whether all of them judged."""
    kernel: str
    """Kernel id."""
    candidate: str
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    device: str
    gpu: DeviceFacts | None = None
    sanitizer: str | None = None
    """e.g. compute-sanitizer 2025.3.1; None if none was found."""
    runs: tuple[SanitizerRun, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the compile stage, where the candidate did not get further."""
    elapsed_s: float

    @property
    def is_complete(self) -> bool:
        """Whether every tool judged; without it `passed` says little."""
        return bool(self.runs) and all(run.outcome in ("passed", "findings") for run in self.runs)


CheckLevel = Literal["quick", "full"]


class Mismatch(Record):
    """Where an output is wrong first, said so that an author can mend it.

    Of hidden inputs only their regime, the gate and the pattern are told: index, row, column,
    expected, got and the number of wrong elements are None, and `seed` too.
    """

    workload: str
    tensor: str
    gate: str
    """The gate that refused: finite, untouched, unwritten, scale, code, ulp, one_rounding, row_l2,
    total_l2, float32, exact, bias (docs/correctness.md)."""
    index: tuple[int, ...] | None
    """Logical index of the first wrong element. None with a row: that row was not judged, and has
    NaN or bytes that nothing wrote."""
    row: int | None
    column: int | None
    expected: str | None
    got: str | None
    wrong_elements: int | None
    total_elements: int
    pattern: str
    """The shape of the error in words: "whole rows 3, 7", "every 16th element", "tail only"; of
    hidden inputs without numbers."""
    seed: int | None
    """Seed of the inputs; None for a hidden one."""
    regime: str


class TensorAccuracy(Record):
    """How close one output came, worst over all seeds; information beside the gates."""

    tensor: str
    mismatch_fraction: float
    """Share of storage elements that differ from the correctly rounded result."""
    max_abs: float
    """Largest absolute difference to the oracle on dequantised values."""
    max_rel: float
    """Largest relative difference on dequantised values, where the expected value is not 0."""
    within_fixed_limits: bool
    """Whether max_abs < 1e-2 and max_rel < 1e-3, fixed limits that are often asked for: information
    only (docs/correctness.md says why they cannot judge 4-bit output)."""
    l2_ratio: float | None
    """Relative L2 error divided by that of correct rounding; bf16 outputs only."""
    worst_on: dict[str, str] = Field(default_factory=dict[str, str])
    """By number the inputs that it is of, e.g. max_rel: `b8xh4096, tiny inputs, seed 2`."""


class WorkloadCheck(SparseRecord):
    """What was run for one workload."""

    left_out: ClassVar[dict[str, object]] = {"judged_rows": None}

    workload: str
    status: Status
    visible_seeds: int = Field(ge=0)
    """0 at a large workload whose hidden inputs prove more."""
    hidden_seeds: int = Field(ge=0)
    poisons: int = Field(ge=0)
    schedules: int = Field(ge=0)
    executions: int = Field(ge=0)
    judged_rows: int | None = Field(default=None, ge=1)
    """How many rows the oracle judged in each case (docs/correctness.md); None: all."""
    elapsed_s: float = Field(ge=0.0)


class RaceCheck(Record):
    """What the simulator, which sees every access, said of a candidate that a GPU let pass."""

    outcome: Literal["passed", "findings", "unavailable"]
    """unavailable: the simulator did not judge, so that no race check stands behind the result."""
    workloads: tuple[str, ...] = ()
    """The simulator ran these: the smallest of each cubin and launches, and drawn shapes."""
    reason: str | None = None
    """The first finding, or why the simulator did not judge, one line."""
    elapsed_s: float = 0.0

    @property
    def words(self) -> str:
        """What was said, one line."""
        match self.outcome:
            case "unavailable":
                return f"no race check stands behind this result: {self.reason}"
            case "findings":
                return f"the simulator finds {self.reason}"
            case _:
                seen = ", ".join(self.workloads)
                return f"the simulator saw every access at {seen}: no race, nothing out of bounds"


class CheckResult(Record):
    """The result of the correctness stage."""

    schema_: Literal["kopt.check/1"] = Field(default="kopt.check/1", alias="schema")
    status: Status
    kernel: str
    candidate: str
    device: str
    level: CheckLevel
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The choice of tune values that was checked; `values_at` has what a variant made of it."""
    workloads: tuple[WorkloadCheck, ...] = ()
    hidden_shapes: tuple[WorkloadCheck, ...] = ()
    """What was run at shapes that were drawn after the build (docs/correctness.md); none at level
    quick, and where `where` or the built cubins admit the named workloads alone."""
    passed_over: tuple[str, ...] = ()
    """Workloads of the domain that were compiled and not run: they are `use: time`, and the device
    is the simulator."""
    regimes_left_out: tuple[str, ...] = ()
    """Regimes of level full of which no inputs were made: the oracle does not draw them, or the
    problem has no rows."""
    fixed_scalars: tuple[str, ...] = ()
    """Scalars of the problem that no launch takes: the code can only hold their values, and nothing
    is said of others."""
    mismatch: Mismatch | None = None
    accuracy: tuple[TensorAccuracy, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    counters: ExecutionCounters | None = None
    """Counters of the first execution of the named workload."""
    compiled: CompileResult
    sandbox: str | None = None
    """Level under which the candidate ran; None if it did not get that far."""
    cpu_bodies: tuple[str, ...] = ()
    """kopt wrappers whose CPU body stood in for device instructions (sim only)."""
    race_check: RaceCheck | None = None
    """A full check on a GPU that found nothing has it; elsewhere it is None, for on sim every
    execution is judged so."""
    unexecuted_lines: tuple[int, ...] = ()
    """Lines of the candidate that load or store, and did so in no case that the simulator ran."""
    sanitizer: SanitizerResult | None = None
    """What compute-sanitizer found, where it was asked for; its status is `status` too unless the
    check itself found something."""
    elapsed_s: float

    @property
    def chosen_tune(self) -> dict[str, int]:
        """The tune values that differ from the header's defaults."""
        return self.compiled.chosen_tune

    def values_at(self, workload: str | None = None) -> dict[str, int]:
        """Return the tune values with those that the workload's variant sets.

        Args:
            workload: Its name; None: the named workload, which the first build serves.
        """
        for build in self.compiled.builds:
            if workload is None or workload in build.workloads:
                return {name: build.defines.get(name, value) for name, value in self.tune.items()}
        return self.tune
