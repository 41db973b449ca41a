"""The tools `job_wait` and `job_cancel`: the second half of every call that took longer."""

from mcp.types import CallToolResult
from pydantic import Field

from kopt.config.errors import ToolError
from kopt.kernels.record import ToldRecord

from .answers import job_answer
from .serve_options import ServeOptions
from .stage_call import wait_for_job
from .tool_spec import Invocation, ToolSpec

WAIT_DESCRIPTION = """\
Wait for a job that an earlier call began, and get its result.

Use it when a reply has status running and a job_id. Call it again while it says running: it \
returns as soon as the job is over, so there is no need to pause between calls. Jobs outlive \
connections; an id from an earlier session works.

Returns what the first tool would have returned; detail full shows all of it, in pages (offset).
Example: {"job_id": "job-20261122-101500-1a2b3c4d"}"""

CANCEL_DESCRIPTION = """\
Stop a job and free its GPU within a second.

Use it for a job_id whose result is no longer wanted. What a beam_step had finished stays in its \
run. A job that is over stays as it is.
Example: {"job_id": "job-20261122-101500-1a2b3c4d"}"""


_ID_CHARACTERS = 80


class JobWaitArguments(ToldRecord):
    """The arguments of `job_wait`."""

    job_id: str = Field(max_length=_ID_CHARACTERS)
    """From a reply with status running."""
    offset: int = Field(default=0, ge=0)
    """With detail full: where the page begins, from the reply before."""


class JobCancelArguments(ToldRecord):
    """The arguments of `job_cancel`."""

    job_id: str = Field(max_length=_ID_CHARACTERS)
    """From a reply with status running."""


async def _wait(call: Invocation, arguments: JobWaitArguments) -> CallToolResult:
    _refuse_run(arguments.job_id, call.options)
    return await wait_for_job(call, arguments.job_id, arguments.offset)


async def _cancel(call: Invocation, arguments: JobCancelArguments) -> CallToolResult:
    _refuse_run(arguments.job_id, call.options)
    view = await call.jobs.cancel(arguments.job_id)
    return await job_answer(view, call.detail)


def _refuse_run(job_id: str, options: ServeOptions) -> None:
    """Say what a run's id is for.

    Raises:
        ToolError: It is one.
    """
    if job_id.startswith("run-"):
        run_id = job_id[:_ID_CHARACTERS]
        step = f"call beam_step with run_id={run_id} to go on with it, or "
        read = f"read kopt://runs/{run_id} for how it stands"
        raise ToolError(f"{run_id} is a run, not a job: {'' if options.read_only else step}{read}")


JOB_WAIT = ToolSpec(
    name="job_wait",
    title="Wait for a job",
    description=WAIT_DESCRIPTION,
    arguments=JobWaitArguments,
    body=_wait,
    waits=True,
    is_read_only=True,
    search_hint="wait for, poll or get the result of a running kopt job",
)
JOB_CANCEL = ToolSpec(
    name="job_cancel",
    title="Cancel a job",
    description=CANCEL_DESCRIPTION,
    arguments=JobCancelArguments,
    body=_cancel,
    is_destructive=True,
    search_hint="stop, abort or cancel a running kopt job and free the GPU",
)
