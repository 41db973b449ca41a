"""Replies made in a thread: to render a large result takes time that other calls want.

What makes them is imported there too, with the first one: it loads numpy, and a server starts
without it.
"""

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from mcp.types import CallToolResult

from kopt.server.jobs.records import JobView
from kopt.tools.facts.fitting import Detail


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
