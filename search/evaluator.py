"""The seam between the search and whatever evaluates candidates.

A job goes in, an evaluation comes out; both are plain data and digests of artifacts, so that an
implementation may live in another process or on another host. `local_evaluator.py` runs the
stages on this machine; `recorded_evaluator.py` is the offline twin.
"""

from concurrent.futures import Future
from typing import Protocol

from pydantic import Field, model_validator

from kopt.kernels.check_result import CheckLevel
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status

LATENCY = "latency"
"""Metric that orders candidates: time of one call, unit us."""
REGISTERS = "registers_per_thread"
"""Metric that breaks ties: the most registers of any kernel of the candidate."""


class EvaluationJob(Record):
    """One candidate to evaluate at one level."""

    id: str
    """Idempotency key: the same id is the same work."""
    kernel: str
    """Kernel id."""
    source: str
    source_name: str
    """File name shown in diagnostics."""
    tune: dict[str, int]
    level: CheckLevel
    arch: str
    """Compiler target, e.g. sm_100a."""


class Value(Record):
    """One number about a candidate, with how it came about."""

    workload: str
    metric: str
    unit: str
    """us, bytes, or 1 for counts and fractions."""
    provenance: Provenance
    value: float | None
    """None exactly if the provenance is unavailable."""


class Evaluation(Record):
    """What an evaluator found out about one job."""

    status: Status
    summary: str
    """One line for people: what passed, or the first thing that did not."""
    device: str
    sandbox: str | None = None
    equivalence: str | None = None
    """Equal for candidates with the same cubins and the same launches: they count once. The
    cubins alone would not do, because a block size may stand in the launch plan only."""
    values: tuple[Value, ...] = ()
    artifacts: dict[str, str] = Field(default_factory=dict[str, str])
    """Digest by kind, already in the artifact store."""
    elapsed_s: float = 0.0

    @model_validator(mode="after")
    def _speed_only_if_passed(self) -> "Evaluation":
        if self.status is not Status.PASSED and self.latency is not None:
            raise ValueError(f"a {self.status} evaluation cannot carry a latency")
        return self

    @property
    def latency(self) -> Value | None:
        """The time that orders this candidate; None if there is none."""
        return self._metric(LATENCY)

    @property
    def registers(self) -> float | None:
        """The most registers per thread of any kernel; None if unknown."""
        value = self._metric(REGISTERS)
        return None if value is None else value.value

    def _metric(self, metric: str) -> Value | None:
        for value in self.values:
            if value.metric == metric and value.value is not None:
                return value
        return None


class Evaluator(Protocol):
    """Something that evaluates candidates, several at once."""

    @property
    def slots(self) -> int:
        """How many jobs it works on at the same time."""
        ...

    def submit(self, job: EvaluationJob) -> "Future[Evaluation]":
        """Start `job`.

        The candidate's failure is the result's status. The future raises `InfraError` if the
        machine failed under the job, so that it may be tried again; `SetupError` or `ToolError`
        if no candidate could be evaluated here.
        """
        ...

    def close(self, grace_s: float = 5.0) -> None:
        """Drop what has not begun and wait up to `grace_s` for the rest; leaves no process."""
        ...
