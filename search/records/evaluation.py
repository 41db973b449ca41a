"""The seam between the search and whatever evaluates candidates.

A job goes in, an evaluation comes out; both are plain data and digests of artifacts, so that an
implementation may live in another process or on another host. `local_evaluator.py` runs the
stages on this machine.
"""

from concurrent.futures import Future
from typing import Literal, Protocol, Self

from pydantic import Field, model_validator

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status

EvaluationLevel = Literal["quick", "tie", "full", "again"]
"""quick: what the search goes by. tie: the quick check again, timed with more pairs. full: what a
winner needs. again: the full check once more with other hidden seeds, untimed, because whoever read
the source asked for it."""

PROOF_LEVELS: tuple[EvaluationLevel, ...] = ("full", "again")
"""The levels that end a run: they are evaluated however much of its time is spent."""

LATENCY = "latency"
"""Metric: time of one call, unit us. Estimated, it orders candidates; measured, it is shown only,
because two measurements at different moments do not compare: the speedups do."""
SPEEDUP = "speedup"
"""Metric that orders measured candidates: baseline time / candidate time from paired replays. Its
unit names the baseline: numbers of different units do not compare."""
SPEEDUP_LOW = "speedup_low"
SPEEDUP_HIGH = "speedup_high"
"""Metrics: the 95 % interval of the speedup."""
BASELINE_LATENCY = "baseline_latency"
"""Metric: time of one call of the baseline in the same measurement, unit us."""
NOISE_FLOOR = "noise_floor"
"""Metric: the least log ratio that the device could tell from none in the same measurement."""
FLOOR = "floor"
"""Metric: the least time in which any candidate could do the work, unit us, computed."""
COPY = "plain_copy"
"""Metric: the time of a plain copy of as many bytes on the same GPU, unit us, measured."""
BELOW_COPY = "below_copy"
"""Metric: the part of that time that a candidate takes which is clearly faster; else absent."""
FAMILY_CONTRADICTED = "family_contradicted"
"""Metric: 1 where the machine code contradicts the claimed family; absent where it does not."""
REGISTERS = "registers_per_thread"
"""Metric that breaks ties: the most registers of any kernel of the candidate."""


class EvaluationJob(Record):
    """One candidate to evaluate at one level."""

    id: str
    """`run-1/5/quick`: run, candidate and level. The same id is the same work."""
    kernel: str
    """Kernel id."""
    source: str
    source_name: str
    """File name shown in diagnostics."""
    tune: dict[str, int]
    level: EvaluationLevel
    arch: str
    """Compiler target, e.g. sm_100a."""
    baseline: str | None = None
    """The unit of the speedups that the run has so far; another one is refused. None: none yet."""
    family: str = "other"
    """What its author claims; checked against the machine code."""
    pairs: int | None = None
    """Timed pairs of a quick or a tie evaluation; None: the fewest that there are."""
    measured: tuple["KnownMeasurement", ...] = ()
    """What the run has measured already: not measured again in a quick evaluation."""

    @property
    def run(self) -> str:
        """Id of the run."""
        return self.id.split("/")[0]

    @property
    def candidate(self) -> int:
        """`seq` of the candidate."""
        return int(self.id.split("/")[1])


class MetricValue(Record):
    """One number about a candidate, with how it came about."""

    workload: str
    metric: str
    unit: str
    """us, bytes, or 1 for counts and fractions."""
    provenance: Provenance
    value: float | None
    """The number; None exactly if the provenance is unavailable."""

    @classmethod
    def of(cls, workload: str, metric: tuple[str, str], how: Provenance, number: float) -> Self:
        """Return the value of a metric, which is named with its unit."""
        name, unit = metric
        return cls(workload=workload, metric=name, unit=unit, provenance=how, value=number)


class KnownMeasurement(Record):
    """The times of one program, as they were measured for the first candidate that it was of."""

    equivalence: str
    candidate: int
    """`seq` of that candidate."""
    values: tuple[MetricValue, ...]
    """Empty where its time was impossible."""
    artifacts: dict[str, str] = Field(default_factory=dict[str, str])
    """Digests of the benchmark's results, by kind."""


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
    values: tuple[MetricValue, ...] = ()
    artifacts: dict[str, str] = Field(default_factory=dict[str, str])
    """Digest by kind, already in the artifact store."""
    elapsed_s: float = 0.0
    gpu_seconds: float = 0.0
    """How long the GPU was held for it; 0 on sim."""
    measured_as: int | None = None
    """`seq` of the candidate with the same cubins and launches whose times these are; None: its
    own."""

    @model_validator(mode="after")
    def _speed_only_if_passed(self) -> "Evaluation":
        if self.status is not Status.PASSED and (self.latency or self.speedup):
            raise ValueError(f"a {self.status} evaluation cannot carry a latency or a speedup")
        return self

    @property
    def latency(self) -> MetricValue | None:
        """The time of one call on the named workload; None if there is none."""
        return self.metric(LATENCY)

    @property
    def speedup(self) -> MetricValue | None:
        """The paired speedup on the named workload; None where nothing was measured."""
        return self.metric(SPEEDUP)

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of that speedup."""
        low, high = self.metric(SPEEDUP_LOW), self.metric(SPEEDUP_HIGH)
        if low is None or high is None or low.value is None or high.value is None:
            return None
        return low.value, high.value

    @property
    def cost(self) -> float | None:
        """What orders candidates, less is better; compares within one run only.

        1 / speedup where the candidate was timed against the run's baseline, else the estimated
        time. None for a measured time without a speedup, e.g. an impossible one.
        """
        if self.speedup is not None and self.speedup.value:
            return 1.0 / self.speedup.value
        latency = self.latency
        if latency is None or latency.provenance is Provenance.MEASURED:
            return None
        return latency.value

    @property
    def registers(self) -> float | None:
        """The most registers per thread of any kernel; None if unknown."""
        value = self.metric(REGISTERS)
        return None if value is None else value.value

    def metric(self, name: str) -> MetricValue | None:
        """Return the first available value of a metric: that of the named workload comes first."""
        for value in self.values:
            if value.metric == name and value.value is not None:
                return value
        return None


CLOSE_GRACE_S = 1.0
"""For what still runs when an evaluator is closed: nobody reads its result any more, so it is for
scratch folders to go. Ctrl-C waits as long, and is to end within two seconds."""


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

    def close(self, grace_s: float = CLOSE_GRACE_S) -> None:
        """Drop what has not begun and wait up to `grace_s` for the rest; leaves no process."""
        ...
