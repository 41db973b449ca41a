"""What the tools of the stages share: a candidate's arguments, and a job that is waited for."""

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from mcp.types import CallToolResult
from pydantic import Field

from kopt.server.jobs.records import Progress
from kopt.server.work.requests import Work

from .answers import job_answer
from .caller import caller_of
from .choices import known_kernel
from .serve_options import ServeOptions
from .tool_spec import Body, ToolArguments, ToolCall
from .workspace import SourceChoice, chosen_candidate

DEFAULT_WAIT_S = 45.0
MAX_WAIT_S = 50.0
"""Clients give up on a silent call after a minute at the earliest."""


class WaitingArguments(ToolArguments):
    """What every tool takes that may have to wait."""

    wait_s: float = Field(default=DEFAULT_WAIT_S, ge=0, le=MAX_WAIT_S)
    """Seconds to wait; then the reply is a job_id for job_wait."""


class CandidateArguments(WaitingArguments):
    """What every tool takes that works on one candidate."""

    kernel: str = Field(max_length=200)
    """Kernel id from list_kernels, e.g. add_rmsnorm_fp4quant_b128xh2048."""
    source: str = ""
    """The whole .cu text. Exactly one of source and path."""
    path: str = ""
    """A .cu file in the workspace; shorter than source where the file exists."""
    tune: dict[str, int] = Field(default_factory=dict[str, int], max_length=64)
    """Values for the header's tune names, e.g. {"BLOCK": 256}. Default: the first of each."""


def candidate_fields(arguments: CandidateArguments, options: ServeOptions) -> dict[str, Any]:
    """Return the fields of `SourceWork` that `arguments` ask for.

    Raises:
        ToolError: No such kernel, or the candidate cannot be read.
    """
    choice = SourceChoice(arguments.source, arguments.path)
    candidate = chosen_candidate(choice, options.workspaces)
    return {
        "kernel": known_kernel(arguments.kernel, options.settings),
        "source": candidate.source,
        "source_name": candidate.name,
        "tune": dict(arguments.tune) or None,
    }


def stage_body(make_work: Callable[[Any, ServeOptions], Work]) -> Body:
    """Return the body of a tool that submits what `make_work(arguments, options)` returns.

    It waits as long as the call allows. A call that is cancelled leaves the job going: whoever has
    its id can wait for it again.
    """

    async def body(call: ToolCall, arguments: Any) -> CallToolResult:
        # In a thread: it reads files, and the first time it imports what reads problems.
        work = await to_thread.run_sync(make_work, arguments, call.options, abandon_on_cancel=True)
        job_id = await call.jobs.submit(work, caller_of(call.context))
        return await wait_for_job(call, job_id, arguments)

    return body


async def wait_for_job(
    call: ToolCall, job_id: str, arguments: WaitingArguments, offset: int = 0
) -> CallToolResult:
    """Wait for a job as long as the call allows, report its progress, and return its reply."""

    async def report(progress: Progress) -> None:
        # Nothing is sent to a client that did not ask for progress, or that is gone.
        await call.context.report_progress(progress.done, progress.total, progress.message)

    view = await call.jobs.wait(job_id, arguments.wait_s, report)
    return await job_answer(view, arguments.detail, offset)
