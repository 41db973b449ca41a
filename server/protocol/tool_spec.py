"""A tool of kopt, its words and arguments, and how it becomes a tool of the SDK.

Arguments are a record, so that a tool has any number of them, documented field by field; `body`
gets them checked. Its schema goes to clients without pydantic's titles, references, limits on
lengths and empty defaults: every token of it is paid in every session, and some clients do not
follow `$ref`. Here kopt's errors become replies that a model can read.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import Field

from kopt.kernels.record import Record, ToldRecord
from kopt.server.exits import ExitCode, failure_of
from kopt.server.jobs.jobs import Jobs
from kopt.server.jobs.owned_jobs import OwnedJobs
from kopt.tools.facts.fitting import Detail

from .caller import Caller, caller_of
from .cancelled_calls import WaitingCalls
from .refusal import refusal
from .serve_options import ServeOptions
from .told_once import ToldOnce


@dataclass(frozen=True)
class Invocation:
    """One call of a tool: the server that it reached, the request that it came by, how it waits."""

    options: ServeOptions
    jobs: OwnedJobs
    """The jobs that the caller may see."""
    caller: Caller
    context: Context[Any, Any]
    calls: WaitingCalls
    """The calls of this server that wait for jobs."""
    told: ToldOnce
    detail: Detail
    wait_s: float


Body = Callable[[Invocation, Any], Awaitable[CallToolResult]]


@dataclass(frozen=True)
class ToolSpec:
    """One tool."""

    name: str
    title: str
    description: str
    """Its purpose in words for the model: when not to use it, what comes next, an example."""
    arguments: type[Record]
    """The arguments but `detail`, which every tool has, and `wait_s`."""
    body: Body
    """Called with the `Invocation` and a checked record of type `arguments`."""
    waits: bool = False
    """Whether it may have to wait for a job, and has `wait_s`."""
    is_read_only: bool = False
    """Compiles and runs nothing: stays in a read-only server, and clients may call it in
    parallel."""
    is_destructive: bool = False
    is_idempotent: bool = True
    search_hint: str | None = None
    """Words by which a client that defers tools finds this one; None: always loaded."""
    view: str | None = None
    """Address of the document that shows its results, in clients that show views (MCP Apps)."""


DEFAULT_WAIT_S = 45.0
MAX_WAIT_S = 50.0
"""Clients give up on a silent call after a minute at the earliest."""


class WaitArgument(ToldRecord):
    """The argument of tools that may have to wait."""

    wait_s: float = Field(default=DEFAULT_WAIT_S, ge=0, le=MAX_WAIT_S)
    """Seconds; then the reply is a job_id for job_wait."""


logger = logging.getLogger(__name__)
BUG = "kopt has a bug here; the server's log has the details"
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "next": {"type": "string"}},
    "required": ["status"],
}
"""What every reply that is no error has; the rest hangs on the status."""
_EMPTY: tuple[Any, ...] = ("", [], {}, None)
_LEFT_OUT = ("$defs", "title", "maxLength", "minLength", "maxItems", "minItems", "maxProperties")


class _DetailArgument(ToldRecord):
    """The argument of every tool."""

    detail: Detail = "concise"
    """full: everything there is."""


def build_tool(spec: ToolSpec, options: ServeOptions, jobs: Jobs, calls: WaitingCalls) -> Tool:
    """Return the tool of `spec` for a server with `options`."""
    told = ToldOnce()

    async def run(
        context: Context[Any, Any], detail: Detail, wait_s: float = 0.0, **values: Any
    ) -> CallToolResult:
        try:
            caller = caller_of(context)
            owned = OwnedJobs(jobs, caller.owner)
            call = Invocation(options, owned, caller, context, calls, told, detail, wait_s)
            return await spec.body(call, spec.arguments(**values))
        except Exception as error:  # the outermost frame of a call; a bug goes to the log
            failure = failure_of(error)
            if failure.code is ExitCode.BUG:
                logger.exception("%s failed", spec.name)
                return refusal(f"{spec.name}: {BUG}; another call may still work")
            parts = [failure.message, failure.hint or ""]
            return refusal(" ".join(part for part in parts if part))

    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context[Any, Any]),
        *_parameters(spec.arguments, spec.name),
        *_parameters(_DetailArgument),
        *(_parameters(WaitArgument) if spec.waits else ()),
    ]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions may have one
        parameters, return_annotation=CallToolResult
    )
    tool = Tool.from_function(
        run,
        name=spec.name,
        title=spec.title,
        description=spec.description,
        annotations=ToolAnnotations(
            read_only_hint=spec.is_read_only,
            destructive_hint=spec.is_destructive,
            idempotent_hint=spec.is_idempotent,
            open_world_hint=False,
        ),
        meta=_meta(spec),
    )
    tool.fn_metadata.output_schema = OUTPUT
    return tool.model_copy(update={"parameters": _compact_schema(tool.parameters)})


def _meta(spec: ToolSpec) -> dict[str, Any]:
    meta: dict[str, Any] = {"anthropic/searchHint": spec.search_hint}
    if spec.search_hint is None:
        meta = {"anthropic/alwaysLoad": True}
    if spec.view is not None:
        meta["ui"] = {"resourceUri": spec.view}
    return meta


def _parameters(arguments: type[Record], tool: str = "") -> list[inspect.Parameter]:
    """Return the fields of a record as parameters, without the one that names the tool in a job."""
    # A parameter of type `str` must stay exactly that: the SDK reads JSON in any other.
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=field.annotation, default=field
        )
        for name, field in arguments.model_fields.items()
        if not tool or field.default != tool
    ]


def _compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the argument schema of a tool, closed to unknown names."""
    return {**_compact(schema, schema.get("$defs", {})), "additionalProperties": False}


def _compact(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _compact(definitions[node["$ref"].rpartition("/")[2]], definitions)
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in _LEFT_OUT or (key == "default" and value in _EMPTY):
            continue
        if key == "properties":
            kept[key] = {name: _compact(child, definitions) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            kept[key] = _compact(cast(dict[str, Any], value), definitions)
        else:
            kept[key] = value
    return kept
