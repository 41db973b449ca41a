"""Progress of a job as MCP notifications: always rising, as the protocol demands."""

from typing import Any

from mcp.server.mcpserver import Context

from kopt.server.jobs.records import Progress

_LEAST_STEP = 1e-3


class RisingProgress:
    """Reports the progress of one job to the request that waits for it.

    Nothing is sent to a client that did not ask for progress, or that is gone.
    """

    def __init__(self, context: Context[Any, Any]) -> None:
        """Take the request to report to."""
        self._context = context
        self._last = 0.0

    async def report(self, progress: Progress) -> None:
        """Send `progress`; news without an advance counts as a very small one."""
        self._last = max(progress.done, self._last + _LEAST_STEP)
        total = progress.total
        if total is not None and self._last > total:
            total = None
        await self._context.report_progress(self._last, total, progress.message)
