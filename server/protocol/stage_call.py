"""Calls of tools: arguments resolved, a job submitted and waited for, the reply made in a thread.

To render a large result takes time that other calls want. What makes replies is imported with the
first one: it loads numpy, and a server starts without it.
"""

import re
from collections.abc import Callable
from typing import Any

from anyio import to_thread
from mcp.types import CallToolResult

from kopt.config.errors import ToolError
from kopt.kernels.families import FAMILIES
from kopt.server.jobs.records import JobView, Progress
from kopt.server.work.requests import (
    BenchWork,
    CheckWork,
    ComparedWork,
    CompileWork,
    ProfileWork,
    StepWork,
    SubmittedCandidate,
    Work,
)
from kopt.tools.facts.fitting import Detail

from .choices import (
    chosen_arch,
    chosen_archs,
    chosen_device,
    device_of_run,
    known_kernel,
    known_run,
)
from .given_source import Reader
from .refusal import nearest, shown
from .serve_options import ServeOptions
from .table_call import is_table, resolved_table
from .tool_spec import Invocation

Asked = CompileWork | CheckWork | BenchWork | ProfileWork | StepWork
"""The arguments of the tools of the stages."""
_RUN_ID = re.compile(r"run-[\w-]{1,60}")


async def stage_body(call: Invocation, arguments: Asked) -> CallToolResult:
    """Submit a job and wait for it as long as the call allows.

    A call that loses its connection leaves the job going: its id can be waited for again.
    """
    # In a thread: it reads files, and the first time it imports what reads problems.
    owner = call.caller.owner
    work = await to_thread.run_sync(
        resolved, arguments, call.options, owner, abandon_on_cancel=True
    )
    job_id = await call.jobs.submit(work, call.caller.name)
    return await wait_for_job(call, job_id)


async def wait_for_job(call: Invocation, job_id: str, offset: int = 0) -> CallToolResult:
    """Wait for a job as long as the call allows, report its progress, and return its reply.

    A call that its client cancels ends the job, unless another call waits for it
    (`cancelled_calls.py`).
    """
    told: list[str] = []

    async def report(progress: Progress) -> None:
        # Nothing is sent to a client that did not ask for progress, or that is gone. The id stands
        # in the first message, so that a client which leaves can come back to its job.
        message = progress.message if told else f"{job_id}: {progress.message}"
        told.append(message)
        await call.context.report_progress(progress.done, progress.total, message)

    with call.calls.waiting(call.context, job_id):
        view = await call.jobs.wait(job_id, call.wait_s, report)
    return await job_answer(view, call.detail, offset)


def resolved(arguments: Asked, options: ServeOptions, owner: str) -> Work:
    """Return `arguments` with sources read, and with devices that this server offers to `owner`.

    Raises:
        ToolError: A kernel, run, device, target or family is unknown, both or neither of two
            exclusive arguments are given, or a candidate cannot be read.
    """
    if isinstance(arguments, StepWork):
        return _resolved_step(arguments, options, owner)
    if isinstance(arguments, ComparedWork) and is_table(arguments):
        return resolved_table(arguments, Reader(options, owner))
    if isinstance(arguments, ProfileWork) and arguments.sass:
        from kopt.tools.profiling.machine_excerpt import refuse_unclear  # loads numpy

        refuse_unclear(arguments.sass)
    text = Reader(options, owner).text(arguments.source, arguments.path)
    known: dict[str, Any] = {"source": text}
    known_kernel(arguments.kernel, options.settings)
    if isinstance(arguments, CompileWork):
        known["arch"] = chosen_archs(arguments.arch)
    else:
        known["device"] = chosen_device(arguments.device, options)
        known["arch"] = chosen_arch(arguments.arch)
    return arguments.model_copy(update=known)


def _resolved_step(arguments: StepWork, options: ServeOptions, owner: str) -> StepWork:
    if bool(arguments.kernel) == bool(arguments.run_id):
        given = "both" if arguments.kernel else "neither"
        raise ToolError(
            "give exactly one of kernel (begins a run) and run_id (goes on with one); got " + given
        )
    if arguments.run_id and not _RUN_ID.fullmatch(arguments.run_id):
        raise ToolError(
            f"run_id {shown(arguments.run_id)} is none: they look like run-20261122-..."
        )
    device = arguments.device
    if arguments.run_id:
        known_run(arguments.run_id, owner, options.settings)
    if arguments.run_id and device == "auto":
        # Not the first device of the server: the job would wait in the line of another one.
        device = device_of_run(arguments.run_id, options.settings)
    if arguments.kernel:
        known_kernel(arguments.kernel, options.settings)
    candidates = tuple(
        _resolved_candidate(index, candidate, Reader(options, owner))
        for index, candidate in enumerate(arguments.candidates)
    )
    known = {
        "candidates": candidates,
        "device": chosen_device(device, options),
        "arch": chosen_arch(arguments.arch),
    }
    return arguments.model_copy(update=known)


def _resolved_candidate(
    index: int, candidate: SubmittedCandidate, reader: Reader
) -> SubmittedCandidate:
    if candidate.family and candidate.family not in FAMILIES:
        near = nearest(candidate.family, FAMILIES)
        raise ToolError(f"candidates[{index}].family {shown(candidate.family)} is unknown, {near}")
    try:
        source = reader.text(candidate.source, candidate.path)
    except ToolError as error:
        raise ToolError(f"candidates[{index}]: {error}") from error
    return candidate.model_copy(update={"source": source})


async def job_answer(view: JobView, detail: Detail, offset: int = 0) -> CallToolResult:
    """Return the reply to a job as it stands; `offset` is where a page of a full one begins."""

    def reply() -> CallToolResult:
        from .replies.reply import job_reply

        return job_reply(view, detail, offset)

    return await to_thread.run_sync(reply, abandon_on_cancel=True)


async def facts_answer(find: Callable[[], dict[str, Any]]) -> CallToolResult:
    """Return the reply that says what `find` returns; it is called in the thread."""

    def reply() -> CallToolResult:
        from .replies.reply import facts_reply

        return facts_reply(find())

    return await to_thread.run_sync(reply, abandon_on_cancel=True)
