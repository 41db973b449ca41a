"""What the other machine answers (`calls.py`), as JSON in a frame; outputs lie beside it.

An answer goes to the lane of its call, and progress to none.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.check_result import SanitizerRun
from kopt.kernels.counters import ExecutionCounters, HardwareCounters
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.pool_status import PoolStatus
from kopt.kernels.record import Diagnostic, Record
from kopt.kernels.status import Status
from kopt.tools.devices.timer import Replays, TimingFacts


class OpenedAnswer(Record):
    """The device: its own name there; of a GPU what it is, too."""

    kind: Literal["opened"] = "opened"
    facts: DeviceFacts | None = None
    spec: GpuSpec | None = None


class DoneAnswer(Record):
    """It is done; to `HasFolderCall` whether it is there."""

    kind: Literal["done"] = "done"
    is_there: bool = True


class OutcomeAnswer(Record):
    """`ExecutionOutcome` without its outputs, which lie beside the message."""

    kind: Literal["outcome"] = "outcome"
    status: Status
    diagnostics: tuple[Diagnostic, ...] = ()
    counters: ExecutionCounters | None = None
    sandbox: str | None = None
    cpu_bodies: tuple[str, ...] = ()
    access_lines: dict[int, bool] = Field(default_factory=dict[int, bool])
    elapsed_s: float = 0.0


class PreparedAnswer(Record):
    """None if a program can be executed, else how it failed."""

    kind: Literal["prepared"] = "prepared"
    failure: OutcomeAnswer | None = None


class TimingAnswer(Record):
    """The timing session is open."""

    kind: Literal["timing"] = "timing"
    facts: TimingFacts


class TimingFailedAnswer(Record):
    """A side failed, and the session with it."""

    kind: Literal["timing_failed"] = "timing_failed"
    side: int | None
    outcome: OutcomeAnswer


class ReplaysAnswer(Record):
    """The times of the replays, by sequence."""

    kind: Literal["replays"] = "replays"
    replays: tuple[Replays, ...]


class OutputsAnswer(Record):
    """Outputs of the k-th set that was asked for are `<k>/<tensor>`."""

    kind: Literal["outputs"] = "outputs"
    rotations: tuple[int, ...]


class NumberAnswer(Record):
    """Microseconds of a warm call, the copy bandwidth in 1e9 bytes/s, or a number of evaluators."""

    kind: Literal["number"] = "number"
    value: float


class CountersAnswer(Record):
    """The counters; the files that their paths name lie beside the message."""

    kind: Literal["counters_read"] = "counters_read"
    counters: HardwareCounters


class SanitizerAnswer(Record):
    """What the tools found; the files that their paths name lie beside the message."""

    kind: Literal["sanitized"] = "sanitized"
    program: str | None
    runs: tuple[SanitizerRun, ...]


class FoundThing(Record):
    """One thing that a device needs, or that makes it better."""

    name: str
    is_present: bool
    is_required: bool
    detail: str


class FoundAnswer(Record):
    """What the machine has."""

    kind: Literal["found"] = "found"
    things: tuple[FoundThing, ...]


class ErrorAnswer(Record):
    """The call raised; a bug has its traceback."""

    kind: Literal["error"] = "error"
    error: Literal["tool", "setup", "infra", "timing_lost", "bug"]
    message: str


class PoolStatusAnswer(Record):
    """A pool as it is now."""

    kind: Literal["pool_status"] = "pool_status"
    pools: tuple[PoolStatus, ...]
    """One for each version of kopt that has one in the cluster."""


class ToldAnswer(Record):
    """A line of progress; of no lane."""

    kind: Literal["told"] = "told"
    line: str


class GpuTimeAnswer(Record):
    """Sent before an answer to the same lane: seconds for which the call held the GPU."""

    kind: Literal["gpu_time"] = "gpu_time"
    seconds: float


FarAnswer = Annotated[
    OpenedAnswer
    | DoneAnswer
    | OutcomeAnswer
    | PreparedAnswer
    | TimingAnswer
    | TimingFailedAnswer
    | ReplaysAnswer
    | OutputsAnswer
    | NumberAnswer
    | CountersAnswer
    | SanitizerAnswer
    | FoundAnswer
    | ErrorAnswer
    | PoolStatusAnswer
    | ToldAnswer
    | GpuTimeAnswer,
    Field(discriminator="kind"),
]

FAR_ANSWER: TypeAdapter[FarAnswer] = TypeAdapter(FarAnswer)
