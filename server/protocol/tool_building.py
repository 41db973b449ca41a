"""Turning a `ToolSpec` into a tool of the SDK, with a compact schema.

This is also the one place where kopt's errors become replies that a model can read.
"""

import inspect
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ToolAnnotations

from kopt.server.exits import ExitCode, failure_of
from kopt.server.jobs.jobs import Jobs

from .refusal import refusal
from .serve_options import ServeOptions
from .tool_schema import compact_schema
from .tool_spec import ToolArguments, ToolCall, ToolSpec

_LAST = ("wait_s", "detail")


def build_tool(spec: ToolSpec, options: ServeOptions, jobs: Jobs) -> Tool:
    """Return the tool of `spec` for a server with `options`."""

    async def run(context: Context[Any, Any], **values: Any) -> CallToolResult:
        try:
            return await spec.body(ToolCall(options, jobs, context), spec.arguments(**values))
        except Exception as error:  # the outermost frame of a call; bugs go on to the SDK's log
            failure = failure_of(error)
            if failure.code is ExitCode.BUG:
                raise
            parts = [failure.message, failure.hint or ""]
            return refusal(" ".join(part for part in parts if part))

    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context[Any, Any]),
        *_parameters(spec.arguments),
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
        meta={"anthropic/alwaysLoad": True}
        if spec.search_hint is None
        else {"anthropic/searchHint": spec.search_hint},
    )
    return tool.model_copy(update={"parameters": compact_schema(tool.parameters)})


def _parameters(arguments: type[ToolArguments]) -> list[inspect.Parameter]:
    """Return the fields of a record as parameters, those that every tool has at the end."""
    fields = arguments.model_fields
    names = sorted(fields, key=lambda name: name in _LAST)
    # A parameter of type `str` must stay exactly that: the SDK reads JSON in any other.
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=fields[name].annotation,
            default=fields[name],
        )
        for name in names
    ]
