"""Calls that wait for jobs, and what becomes of a job when its client cancels the call.

Over stdio a cancelled call ends its job within a second, unless another call waits for the same
job: nobody wants the result. A connection that is lost, or a client that waits no longer than its
own limit, is no wish: those jobs go on. Over HTTP they cannot be told apart, and request ids are
chosen by each client: there jobs go on as well.
"""

import re
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import Context

from kopt.config.errors import KoptError
from kopt.server.jobs.jobs import Jobs

_TOO_LONG = re.compile(r"time[d ]*[ -]?out", re.IGNORECASE)
"""The reason that a client gives where its own limit ended the call: the SDKs say `timed out`."""
_REMEMBERED = 64
"""Calls that were ended from outside, whose cancellation may still be told."""


class WaitingCalls:
    """The open calls of one server that wait for a job, by the id of their request."""

    def __init__(self) -> None:
        """Know of none."""
        self._open: dict[str, str] = {}
        self._ended: OrderedDict[str, str] = OrderedDict()

    @contextmanager
    def waiting(self, context: Context[Any, Any], job_id: str) -> Generator[None]:
        """Count the call as one that waits for the job, as long as the block lasts."""
        if context.request_context.request is not None:  # HTTP
            yield
            return
        request_id = str(context.request_context.request_id)
        self._open[request_id] = job_id
        try:
            yield
        except BaseException:  # the SDK ends the call first, and tells of it afterwards
            self._ended[request_id] = job_id
            while len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)
            raise
        finally:
            self._open.pop(request_id, None)

    def unwanted(self, request_id: str) -> str | None:
        """Return the job that nobody waits for any more, now that a call was cancelled."""
        job_id = self._ended.pop(request_id, None) or self._open.get(request_id)
        others = [one for call, one in self._open.items() if call != request_id]
        return None if job_id is None or job_id in others else job_id


def cancelling(calls: WaitingCalls, jobs: Jobs) -> ServerMiddleware[Any]:
    """Return the middleware that ends the job of a call which its client has cancelled."""

    async def watch(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "notifications/cancelled" and ctx.request is None:
            told = ctx.params or {}
            if _TOO_LONG.search(str(told.get("reason"))):
                return result
            job_id = calls.unwanted(str(told.get("requestId")))
            if job_id is not None:
                with suppress(KoptError):  # swept, or of a server that only watches
                    await jobs.cancel(job_id)
        return result

    return watch
