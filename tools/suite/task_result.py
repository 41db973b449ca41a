"""What became of one task of a suite: its checks and times, as they lie on disk.

The result judges nothing: what counts as valid, and how fast it is over which baseline, `score.py`
and `speeds.py` say.
"""

from typing import Literal

from pydantic import Field

from kopt.config.device_names import is_simulated
from kopt.kernels.bench_result import Comparison, Latency, RejectedBaseline
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Diagnostic, Record
from kopt.kernels.status import Provenance, Status, Verdict


class SearchCost(Record):
    """What the search of a kernel has cost, where the kernel is the winner of a run."""

    run: str
    candidates: int
    tokens: int
    usd: float | None
    """Computed from list prices, or reported by the client that asked; None: it reports none."""
    is_paid: bool
    """Not where a script or a recording answered in Claude's place."""


class CheckedKernel(Record):
    """One source with what its check said."""

    file: str
    candidate: str
    """Content id of the source."""
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    status: Status
    level: CheckLevel
    device: str
    workloads: tuple[str, ...] = ()
    """What the check has run."""
    said: tuple[Diagnostic, ...] = ()
    """The first things that it found."""
    elapsed_s: float


class TimedWorkload(Record):
    """A kernel's time at one workload, and that of each baseline beside it."""

    workload: str
    status: Status
    """Not passed where an output was wrong in the timing."""
    verdict: Verdict | None
    """Against the main baseline; None unless passed."""
    latency: Latency | None
    """Estimated on sim, where nothing is compared."""
    comparisons: tuple[Comparison, ...] = ()
    """Over each baseline, the main one first, without the log ratios of single pairs."""
    rejected: tuple[RejectedBaseline, ...] = ()
    """Baselines that are not timed, and why."""
    floor_us: float
    """The least time: bytes over the data sheet's bandwidth, or an empty kernel if that is longer.
    Arithmetic sets no floor here: tensor cores do more of it than the lanes of the data sheet."""
    floor_provenance: Literal[Provenance.COMPUTED] = Provenance.COMPUTED
    said: tuple[Diagnostic, ...] = ()


class SuiteTaskResult(Record):
    """What became of one task."""

    schema_: Literal["kopt.suite-task/1"] = Field(default="kopt.suite-task/1", alias="schema")
    task: str
    key: str
    """Hash of all that the result follows from: another key means that it is out of date."""
    fault: str | None = None
    """Why the task could not be judged: a problem with mistakes, no such kernel, a machine that
    failed. None of these is the kernel's; all are tried again."""
    checks: tuple[CheckedKernel, ...] = ()
    """Each source once."""
    times: tuple[TimedWorkload, ...] = ()
    cost: SearchCost | None = None
    device: str
    gpu: DeviceFacts | None
    """None on sim."""
    arch: str
    elapsed_s: float

    @property
    def is_valid(self) -> bool:
        """Whether every source passed its check and was right in every timed call."""
        checked = bool(self.checks) and all(one.status is Status.PASSED for one in self.checks)
        right = all(one.status is Status.PASSED for one in self.times)
        return self.fault is None and checked and right

    @property
    def status(self) -> Status | None:
        """The first status that is not passed, else passed; None for a task that has a fault."""
        if self.fault is not None:
            return None
        found = (*(one.status for one in self.checks), *(one.status for one in self.times))
        return next((one for one in found if one is not Status.PASSED), Status.PASSED)

    @property
    def why(self) -> str:
        """The first reason why it is not valid; empty if it is."""
        if self.fault is not None:
            return self.fault
        parts: tuple[CheckedKernel | TimedWorkload, ...] = (*self.checks, *self.times)
        one = next((part for part in parts if part.status is not Status.PASSED), None)
        if one is None:
            return ""
        errors = (found.message for found in one.said if found.severity == "error")
        return next(errors, one.status.value.replace("_", " "))


class ResultSet(Record):
    """Which results lie in one folder: those of one device, level and choice of kernels."""

    schema_: Literal["kopt.suite-set/1"] = Field(default="kopt.suite-set/1", alias="schema")
    suite: str
    kernels: str
    """`suite` as suite.yaml names them, else what was asked for in their place."""
    level: CheckLevel
    device: str
    """The GPU's name, or the simulator's."""
    arch: str
    over: tuple[str, ...] = ()
    """The baselines of a problem that are timed, by their words in speeds.py; () is all of them."""

    @property
    def name(self) -> str:
        """The folder's name."""
        parts = [self.device, self.arch if is_simulated(self.device) else "", self.kernels]
        parts += ["quick"] if self.level == "quick" else []
        parts += ["over", *self.over] if self.over else []
        words = "-".join(part for part in parts if part)
        kept = "".join(one if one.isalnum() or one in "._" else "-" for one in words.lower())
        return "-".join(part for part in kept.split("-") if part)[:150]

    @property
    def is_measured(self) -> bool:
        """Whether its times are measured; on sim they are estimates."""
        return not is_simulated(self.device)
