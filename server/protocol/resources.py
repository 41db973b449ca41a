"""Resources by address: kernels, GPUs, documents, runs, and result and log of a job.

They hold what a reply has no room for. Nothing here runs a stage, and no address reaches a file
that kopt did not name itself.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from anyio import to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from kopt.config.errors import KoptError, ToolError
from kopt.config.settings import Settings
from kopt.server.jobs.jobs import Jobs
from kopt.server.jobs.owned_jobs import OwnedJobs

from .caller import caller_of, present_owner
from .job_list import job_line

_JOBS_LISTED = 50
_MARKDOWN, _JSON, _TEXT = "text/markdown", "application/json", "text/plain"


def add_resources(server: MCPServer[Any], host: Jobs, settings: Settings) -> None:
    """Register every `kopt://` address of `server`."""

    @server.resource("kopt://kernels", name="kernels", title="All kernels", mime_type=_MARKDOWN)
    async def kernels() -> str:
        """The ids of all kernels, by problem."""
        return await _read(lambda texts: texts.kernel_index(settings))

    @server.resource(
        "kopt://kernels/{kernel_id}", name="kernel", title="One kernel", mime_type=_MARKDOWN
    )
    async def kernel(kernel_id: str) -> str:
        """Definition, tolerance, floors, how to write a candidate, and the reference source."""
        return await _read(lambda texts: texts.kernel_document(kernel_id, settings))

    @server.resource("kopt://gpus/{name}", name="gpu", title="Data sheet of a GPU", mime_type=_TEXT)
    async def gpu(name: str) -> str:
        """Limits and peaks of a GPU that kopt has a data sheet of, e.g. H100 or B200."""
        return await _read(lambda texts: texts.gpu_document(name))

    # +: a uid has slashes in it, which stand for themselves in its address.
    @server.resource(
        "kopt://docs/{+uid}", name="document", title="One document in full", mime_type=_TEXT
    )
    async def document(uid: str) -> str:
        """A function, section or note that search_docs found, by the address in its reply."""
        return await _read(lambda texts: texts.document_text(uid, settings))

    @server.resource("kopt://runs", name="runs", title="Your runs", mime_type=_MARKDOWN)
    async def runs() -> str:
        """The searches that there are, newest first: id, kernel, how it stands, its best time."""
        owner = present_owner()
        return await _read(lambda texts: texts.run_index(owner, settings))

    @server.resource("kopt://jobs", name="jobs", title="Your latest jobs", mime_type=_MARKDOWN)
    async def jobs() -> str:
        """The jobs of tool calls, newest first: id, state, tool, kernel."""
        views = await OwnedJobs(host, present_owner()).recent(_JOBS_LISTED)
        lines = [f"- {job_line(one)}" for one in views] or ["none yet"]
        return "\n".join(("# Jobs (kopt://jobs/{id}/result has a result)", "", *lines)) + "\n"

    del kernels, kernel, gpu, document, runs, jobs
    _add_work(server, host, settings)


def _add_work(server: MCPServer[Any], host: Jobs, settings: Settings) -> None:
    @server.resource("kopt://runs/{run_id}", name="run", title="One run", mime_type=_JSON)
    async def run(run_id: str, ctx: Context[Any, Any]) -> str:
        """A search as it stands: every candidate with status and time, the ranking, the winner."""
        owner = caller_of(ctx).owner
        return await _read(lambda texts: texts.run_text(run_id, owner, settings))

    @server.resource(
        "kopt://runs/{run_id}/candidates/{number}",
        name="candidate",
        title="Source of a candidate",
        mime_type=_TEXT,
    )
    async def candidate(run_id: str, number: str, ctx: Context[Any, Any]) -> str:
        """The source of one candidate of a run, by its number."""
        owner = caller_of(ctx).owner
        return await _read(lambda texts: texts.candidate_text(run_id, number, owner, settings))

    @server.resource(
        "kopt://jobs/{job_id}/result", name="job-result", title="Result of a job", mime_type=_JSON
    )
    async def result(job_id: str, ctx: Context[Any, Any]) -> str:
        """The whole result of a finished job, as JSON."""
        document = await _finished(OwnedJobs(host, caller_of(ctx).owner), job_id)
        return await _read(lambda texts: texts.result_text(document, settings))

    @server.resource(
        "kopt://jobs/{job_id}/log", name="job-log", title="Log of a job", mime_type=_TEXT
    )
    async def log(job_id: str, ctx: Context[Any, Any]) -> str:
        """What the compiler and other tools said in a job, whole."""
        document = await _finished(OwnedJobs(host, caller_of(ctx).owner), job_id)
        return await _read(lambda texts: texts.log_text(document, settings))

    del run, candidate, result, log


async def _finished(jobs: OwnedJobs, job_id: str) -> dict[str, Any]:
    """Return the result of a job.

    Raises:
        ResourceNotFoundError: There is no such job, or it ended without a result.
        ResourceError: It is not over yet.
    """
    try:
        view = await jobs.view(job_id)
    except ToolError as error:
        raise ResourceNotFoundError(str(error)) from error
    if not view.is_over:
        raise ResourceError(f"{job_id} is {view.state}: call job_wait with job_id={job_id}")
    if view.result is None:
        ending = "was cancelled" if view.state == "cancelled" else "failed; job_wait says why"
        raise ResourceNotFoundError(f"{job_id} has no result: it {ending}")
    return view.result


async def _read(read: Callable[[ModuleType], str]) -> str:
    """Return what `read` makes of `documents.py`."""

    def text() -> str:
        from . import documents  # loads numpy: not when a server starts, and in the thread

        return read(documents)

    return await resource_text(text)


async def resource_text(make: Callable[[], str]) -> str:
    """Return what `make` returns in a thread; kopt's errors become those of the protocol."""
    try:
        return await to_thread.run_sync(make, abandon_on_cancel=True)
    except ToolError as error:
        raise ResourceNotFoundError(str(error)) from error
    except KoptError as error:
        raise ResourceError(str(error)) from error
