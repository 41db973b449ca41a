"""The Tasks extension (SEP-2663) over the job store: a call that takes longer becomes a task.

The id of a task is the id of its job, so that tasks outlive connections and servers, and `job_wait`
and `job_cancel` know them too. It speaks the revision of 2026-07-28 only, to clients whose request
declares it; all others get the job id in an ordinary reply.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Extension, MethodBinding, require_client_extension
from mcp.types import CallToolRequestParams, CallToolResult, GetTaskRequestParams

from kopt.config.errors import ToolError
from kopt.server.jobs.jobs import Jobs
from kopt.server.jobs.owned_jobs import OwnedJobs
from kopt.server.jobs.records import JobState, JobView
from kopt.tools.facts.fitting import Detail
from kopt.tools.facts.wording import clipped, plain

from .caller import owner_of
from .stage_call import job_answer
from .stage_tools import STAGES

REVISION = "2026-07-28"
STAGE_TOOLS = frozenset(spec.name for spec in STAGES)
SOON_S = 2.0
"""Work that is done by then comes back at once, without a task."""
POLL_MS = 2000
KEPT_MS = 7 * 24 * 3600 * 1000
"""The least time that jobs are kept."""
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020

_STATUS: dict[JobState, Literal["working", "completed", "cancelled"]] = {
    "queued": "working",
    "running": "working",
    "done": "completed",
    # Of a task only the protocol can fail; a job without a result is an error that the model reads.
    "failed": "completed",
    "cancelled": "cancelled",
}
_MESSAGE_CHARACTERS = 200
_DETAILS_KEPT = 1000


class Tasks(Extension):
    """Turns stage calls into tasks and answers for them."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, host: Jobs) -> None:
        """Serve the jobs of `host`."""
        self._host = host
        # Which calls asked for full replies; a task of an earlier server gets a concise one.
        self._full: dict[str, None] = {}

    def methods(self) -> tuple[MethodBinding, ...]:
        """Return tasks/get, tasks/cancel and tasks/update, which answers questions: kopt has none.

        They exist in the revision that has tasks of this kind, and in no other.
        """
        table = {"tasks/get": self._get, "tasks/cancel": self._cancel, "tasks/update": self._update}
        return tuple(
            MethodBinding(name, GetTaskRequestParams, handler, frozenset({REVISION}))
            for name, handler in table.items()
        )

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Return a task for a stage call that is not done soon, if the client declared tasks."""
        if params.name not in STAGE_TOOLS or not self._is_declared(ctx):
            return await call_next(ctx)
        arguments = params.arguments = dict(params.arguments or {})
        asked = arguments.get("wait_s", SOON_S)
        # A caller with a task need not wait within the call: nothing is gained, and a cancelled
        # request would take the answer with it.
        arguments["wait_s"] = min(asked, SOON_S) if isinstance(asked, int | float) else asked
        result = await call_next(ctx)
        job_id = _waiting_job(result)
        if job_id is None:
            return result
        if arguments.get("detail") == "full":
            self._remember(job_id)
        return {**task_fields(await self._of(ctx).view(job_id)), "resultType": "task"}

    async def _get(
        self, ctx: ServerRequestContext[Any, Any], ref: GetTaskRequestParams
    ) -> dict[str, Any]:
        view = await self._view(ctx, ref)
        fields = task_fields(view)
        if fields["status"] == "completed":
            detail: Detail = "full" if ref.task_id in self._full else "concise"
            reply = await job_answer(view, detail)
            fields["result"] = reply.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {**fields, "resultType": "complete"}

    async def _cancel(
        self, ctx: ServerRequestContext[Any, Any], ref: GetTaskRequestParams
    ) -> dict[str, Any]:
        await self._view(ctx, ref)
        await self._of(ctx).cancel(ref.task_id)
        return {"resultType": "complete"}

    async def _update(
        self, ctx: ServerRequestContext[Any, Any], ref: GetTaskRequestParams
    ) -> dict[str, Any]:
        await self._view(ctx, ref)
        return {"resultType": "complete"}

    async def _view(
        self, ctx: ServerRequestContext[Any, Any], ref: GetTaskRequestParams
    ) -> JobView:
        """Return the job of a task.

        Raises:
            MCPError: The client did not declare tasks (-32021), the header names another task
                (-32020), or there is no such task (-32602).
        """
        require_client_extension(ctx, self.identifier)
        headers: Mapping[str, str] = getattr(ctx.request, "headers", None) or {}  # HTTP only
        if headers.get("mcp-name", ref.task_id) != ref.task_id:
            raise MCPError(HEADER_MISMATCH, "the header Mcp-Name and taskId differ")
        try:
            return await self._of(ctx).view(ref.task_id)
        except ToolError as error:
            named = clipped(plain(ref.task_id), 80)
            raise MCPError(INVALID_PARAMS, f"unknown or expired task {named}") from error

    def _of(self, ctx: ServerRequestContext[Any, Any]) -> OwnedJobs:
        """Return the jobs that the sender of a request may see."""
        return OwnedJobs(self._host, owner_of(ctx.request))

    def _is_declared(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        capabilities = ctx.session.client_capabilities
        declared = (capabilities and capabilities.extensions) or {}
        return ctx.protocol_version == REVISION and self.identifier in declared

    def _remember(self, job_id: str) -> None:
        self._full[job_id] = None
        while len(self._full) > _DETAILS_KEPT:
            del self._full[next(iter(self._full))]


def task_fields(view: JobView) -> dict[str, Any]:
    """Return a job as the fields of a task, without its result."""
    created_us = view.request.created_us
    changed_us = max(created_us, view.progress.at_us if view.progress else 0)
    fields: dict[str, Any] = {
        "taskId": view.request.id,
        "status": _STATUS[view.state],
        "createdAt": _time(created_us),
        "lastUpdatedAt": _time(changed_us),
        "ttlMs": KEPT_MS,
        "pollIntervalMs": POLL_MS,
    }
    message = view.progress.message if view.progress else ""
    if view.state == "queued":
        message = message or "waiting for its turn"
    if message and not view.is_over:
        fields["statusMessage"] = clipped(plain(message), _MESSAGE_CHARACTERS)
    return fields


def _waiting_job(result: HandlerResult) -> str | None:
    """Return the id of the job that a reply says is not over; None for any other reply."""
    if not isinstance(result, CallToolResult) or result.is_error:
        return None
    facts: dict[str, Any] = result.structured_content or {}
    return str(facts["job_id"]) if facts.get("status") in ("queued", "running") else None


def _time(unix_us: int) -> str:
    return datetime.fromtimestamp(unix_us / 1e6, UTC).isoformat(timespec="milliseconds")
