"""What a job is made of. A job is a record, not a process: `KOPT_HOME/jobs/<id>/` holds it."""

from typing import Any, Literal

from kopt.kernels.record import Record
from kopt.server.exits import Failure
from kopt.server.work.progress import Progress as Progress  # a part of every view
from kopt.server.work.requests import Work

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
CPU = "cpu"
"""The simulator and the compiler, which share no device."""
_MESSAGE_CHARACTERS = 4000


class JobNeeds(Record):
    """What a server must have to do a job."""

    problems: str | None = None
    """The folder of the user's own problems; None: kopt's own are enough."""
    device: str = CPU
    """`cuda:N`, or `cpu` for the simulator and the compiler."""


class JobRequest(Record):
    """What a job was asked to do; written once."""

    id: str
    work: Work
    caller: str
    """Who asked, for fairness between callers; no secret."""
    created_us: int
    """Unix microseconds."""
    needs: JobNeeds | None = None
    """None: an older kopt wrote it and did not say."""


class JobError(Record):
    """Why a job has no result; none of it is the candidate's failure, which is a result."""

    kind: Literal["usage", "machine", "bug"]
    message: str
    hint: str | None = None


def job_error(failure: Failure) -> JobError:
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
    """The stage's whole JSON document, once `done`."""
    error: JobError | None = None
    """Once `failed`."""
    holder: str | None = None
    """The process that works on it; None while none does."""
    attempts: int = 0
    """How often work on it was begun."""
    needed_server: str | None = None
    """The command of a server that can take the job up, where nobody has it and the server that
    looks at it cannot."""

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("done", "failed", "cancelled")
