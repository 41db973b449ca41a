"""Jobs as replies read them: in any state, with any stage's result."""

from typing import Any

from kopt.kernels.record import Record
from kopt.server.jobs.records import JobError, JobRequest, JobState, JobView, Progress
from kopt.server.work.requests import (
    BenchWork,
    CheckWork,
    CompileWork,
    ProfileWork,
    StepWork,
    Work,
)

JOB_ID = "job-20261122-101500-1a2b3c4d"
KERNEL = "silu_and_mul_b8xh14336"
CREATED_US = 1_790_000_000_000_000


def work(kind: str, source: str = "", kernel: str = KERNEL) -> Work:
    """Return work of the tool `kind`."""
    match kind:
        case "compile":
            return CompileWork(kernel=kernel, source=source)
        case "check_correctness":
            return CheckWork(kernel=kernel, source=source, device="sim")
        case "benchmark":
            return BenchWork(kernel=kernel, source=source, device="sim")
        case "profile":
            return ProfileWork(kernel=kernel, source=source, device="sim")
        case _:
            return StepWork(kernel=kernel, device="sim")


_TOOLS = {
    "kopt.compile/1": "compile",
    "kopt.check/1": "check_correctness",
    "kopt.bench/1": "benchmark",
    "kopt.profile/1": "profile",
    "kopt.step/1": "beam_step",
    "kopt.choice_table/1": "profile",
}


def done_job(result: Record | dict[str, Any], source: str = "") -> JobView:
    """Return a job that ended in `result`, as it is read from the disk."""
    document = result
    if isinstance(document, Record):
        document = document.model_dump(mode="json", by_alias=True)
    tool = _TOOLS.get(str(document.get("schema")), "compile")
    return job("done", tool, result=document, source=source)


def failed_job(kind: Any, message: str, hint: str | None = None) -> JobView:
    """Return a benchmark without a result."""
    return job("failed", error=JobError(kind=kind, message=message, hint=hint))


def job(state: JobState, tool: str = "benchmark", **fields: Any) -> JobView:
    """Return a job in `state`; `source` among the fields is its candidate's."""
    asked = work(tool, fields.pop("source", ""))
    request = JobRequest(id=JOB_ID, work=asked, caller="local", created_us=CREATED_US)
    return JobView(request=request, state=state, **fields)


def progress(message: str, done: float = 3, total: float | None = 8) -> Progress:
    """Return progress at a fixed time."""
    return Progress(done=done, total=total, message=message, at_us=CREATED_US + 5_000_000)
