"""Which job a cancelled call ends: by whom, why, and who else waits for it."""

from asyncio import CancelledError
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kopt.server.protocol.cancelled_calls import WaitingCalls, cancelling
from kopt.server.work.requests import CompileWork
from support.scripted_jobs import ScriptedJobs

pytestmark = pytest.mark.anyio

JOB = "job-20260101-000000-00000000"


def call(request_id: int, request: object = None) -> Any:
    """Return the context of a call: over stdio, unless it came by an HTTP request."""
    return SimpleNamespace(request_context=SimpleNamespace(request=request, request_id=request_id))


def ended(calls: WaitingCalls, request_id: int, request: object = None) -> None:
    """Let a call wait and be ended from outside."""
    with suppress(CancelledError), calls.waiting(call(request_id, request), JOB):
        raise CancelledError


async def told(calls: WaitingCalls, request_id: int, reason: str | None = None) -> set[str]:
    """Return the jobs that the notification of a cancellation has ended."""
    jobs = ScriptedJobs()
    await jobs.submit(CompileWork(kernel="k"), "")
    params = {"requestId": request_id, "reason": reason}
    context = SimpleNamespace(method="notifications/cancelled", request=None, params=params)

    async def go_on(_: object) -> None:
        return None

    await cancelling(calls, jobs)(cast(Any, context), cast(Any, go_on))
    return jobs.cancelled


@pytest.mark.parametrize("reason", [None, "the user pressed Esc", "caller cancelled"])
async def test_a_cancelled_call_ends_its_job(reason: str | None) -> None:
    calls = WaitingCalls()
    ended(calls, 5)
    assert await told(calls, 5, reason) == {JOB}


@pytest.mark.parametrize(
    "reason", ["McpError: MCP error -32001: Request timed out", "timed out after 60s", "timeout"]
)
async def test_a_client_that_waits_no_longer_leaves_the_job(reason: str) -> None:
    calls = WaitingCalls()
    ended(calls, 5)
    assert await told(calls, 5, reason) == set()


async def test_a_job_that_another_call_waits_for_goes_on_until_that_is_cancelled_too() -> None:
    calls = WaitingCalls()
    with calls.waiting(call(6), JOB):
        ended(calls, 5)
        assert await told(calls, 5) == set()
    ended(calls, 7)
    assert await told(calls, 7) == {JOB}


async def test_calls_over_http_and_calls_that_are_answered_end_nothing() -> None:
    calls = WaitingCalls()
    ended(calls, 5, request=object())
    with calls.waiting(call(6), JOB):
        pass
    assert await told(calls, 5) == await told(calls, 6) == await told(calls, 99) == set()
