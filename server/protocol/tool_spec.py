"""A tool of kopt: its words for the model, its arguments, and what it does.

Arguments are a record, so that a tool has any number of them, documented field by field; `body`
gets them checked. `tool_building.py` turns a `ToolSpec` into a tool of the SDK.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult

from kopt.kernels.record import Record
from kopt.server.jobs.jobs import Jobs
from kopt.tools.facts.fitting import Detail

from .serve_options import ServeOptions


@dataclass(frozen=True)
class Invocation:
    """One call of a tool: the server that it reached, the request that it came by, how it waits."""

    options: ServeOptions
    jobs: Jobs
    context: Context[Any, Any]
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
