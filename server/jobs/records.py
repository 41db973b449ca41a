"""The records of a job, and the messages between a server and its runner.

A job is a record, not a process: `KOPT_HOME/jobs/<id>/` holds it. Server and runner exchange lines
through pipes: the server sends a `RunnerStart`, then the id of one job at a time. The runner
answers each with any number of `ProgressEvent`s and one `OverEvent`. The guard says the last word
of a runner.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.server.exits import CommandFailure
from kopt.server.work.requests import Progress as Progress  # a part of every view
from kopt.server.work.requests import Work

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
CPU = "cpu"
"""The simulator and the compiler, which share no device."""
_MESSAGE_CHARACTERS = 4000


class JobNeeds(Record):
    """The means that a server must have to do a job."""

    problems: str | None = None
    """The folder of the user's own problems; None: kopt's own are enough."""
    device: str = CPU
    """`cuda:N`, a device of another machine, or `cpu` for the simulator here and the compiler."""


class JobRequest(Record):
    """The work of a job; written once."""

    id: str
    work: Work
    caller: str
    """The caller's name, for fairness between callers; no secret."""
    owner: str = ""
    """The owner, who alone is told of it beside the local one; "": the local owner."""
    created_us: int
    """Unix microseconds."""
    needs: JobNeeds = JobNeeds()


class JobError(Record):
    """The reason for a job without a result; a candidate's failure is a result."""

    kind: Literal["usage", "machine", "bug"]
    message: str
    hint: str | None = None


def job_error(failure: CommandFailure) -> JobError:
    """Return `failure` as the error of a job; what is neither usage nor machine is a bug."""
    return JobError(
        kind="bug" if failure.kind == "interrupted" else failure.kind,
        message=failure.message[:_MESSAGE_CHARACTERS],
        hint=failure.hint,
    )


class JobView(Record):
    """A job as it stands."""

    request: JobRequest
    state: JobState
    progress: Progress | None = None
    result: dict[str, Any] | None = None
    """The stage's whole JSON document, once `done`; another version of kopt may have written it."""
    error: JobError | None = None
    """The reason of a failed job."""
    holder: str | None = None
    """The process that works on it; None while none does."""
    attempts: int = 0
    """The number of times that work on it was begun."""
    needed_server: str | None = None
    """The command of a server that can take the job up, where none has it and the server that
    looks at it cannot."""

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("done", "failed", "cancelled")


class RunnerStart(Record):
    """The first line to a runner."""

    settings: Annotated[Settings, AfterValidator(Settings.without_keys)]


class ProgressEvent(Record):
    """The progress of the job at hand."""

    kind: Literal["progress"] = "progress"
    progress: Progress


class OverEvent(Record):
    """The end of the job at hand; its folder says how it ended, unless the disk was full."""

    kind: Literal["over"] = "over"
    error: JobError | None = None
    """The content of error.json; None for a result."""


class EndedEvent(Record):
    """The end of the runner; the guard says so."""

    kind: Literal["ended"] = "ended"
    code: int
    """Exit status, or a negative signal number."""


RunnerEvent = Annotated[ProgressEvent | OverEvent | EndedEvent, Field(discriminator="kind")]
EVENT: TypeAdapter[RunnerEvent] = TypeAdapter(RunnerEvent)
