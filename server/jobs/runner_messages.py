"""What a server and its runner say to each other: lines of JSON through pipes.

The server sends a `RunnerStart`, then a `JobCommand` for one job at a time. The runner answers each
with any number of `ProgressEvent`s and one `OverEvent`. The guard says the last word of a runner.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from kopt.config.settings import Settings
from kopt.kernels.record import Record

from .records import JobError, Progress


class RunnerStart(Record):
    """The first line to a runner."""

    settings: Annotated[Settings, AfterValidator(Settings.without_keys)]


class JobCommand(Record):
    """Do this job, whose request lies in its folder."""

    job_id: str


class ProgressEvent(Record):
    """How far the job at hand is."""

    kind: Literal["progress"] = "progress"
    progress: Progress


class OverEvent(Record):
    """The job at hand is over; its folder says how, unless the disk was full."""

    kind: Literal["over"] = "over"
    error: JobError | None = None
    """As in error.json; None for a result."""


class EndedEvent(Record):
    """The runner has ended; the guard says so."""

    kind: Literal["ended"] = "ended"
    code: int
    """Exit status, or a negative signal number."""


RunnerEvent = Annotated[ProgressEvent | OverEvent | EndedEvent, Field(discriminator="kind")]
EVENT: TypeAdapter[RunnerEvent] = TypeAdapter(RunnerEvent)
