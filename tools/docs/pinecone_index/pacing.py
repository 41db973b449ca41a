"""Waiting as a service asks: for `retry-after`, else longer each time, and not for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
_FIRST_S, _LONGEST_S = 1.0, 60.0
_POLL_S = 2.0


@dataclass(frozen=True)
class Pacing:
    """How long to wait, and by what: tests put something else in place of the clock."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    most_wait_s: float = 300.0
    """In a row, without a success. Limits by the minute need one of it."""
    settle_s: float = 60.0
    """For what was written to be counted."""


async def patiently(
    call: Callable[[], Awaitable[T]], pacing: Pacing, on_wait: Callable[[str], None]
) -> T:
    """Return what `call` comes back with, called again after failures that may pass.

    Raises:
        PineconeError: It failed in another way, or for longer than `pacing.most_wait_s`.
    """
    from pinecone.errors import (
        ApiError,
        PineconeConnectionError,
        PineconeTimeoutError,
        RateLimitError,
        ServiceError,
    )

    waited_s, delay_s = 0.0, _FIRST_S
    while True:
        try:
            return await call()
        except (
            PineconeConnectionError,
            PineconeTimeoutError,
            RateLimitError,
            ServiceError,
        ) as error:
            asked_s = (error.retry_after or 0.0) if isinstance(error, RateLimitError) else 0.0
            wait_s = max(asked_s, delay_s)
            # What is used up for a month does not come back in a minute.
            if waited_s + wait_s > pacing.most_wait_s or "month" in error.message.lower():
                raise
            said = f"answers {error.status_code}" if isinstance(error, ApiError) else "is silent"
            on_wait(f"Pinecone {said}: again in {wait_s:.0f} s")
            await pacing.sleep(wait_s)
            waited_s += wait_s
            delay_s = min(2 * delay_s, _LONGEST_S)


async def until(is_done: Callable[[], Awaitable[bool]], limit_s: float, pacing: Pacing) -> bool:
    """Ask `is_done` every two seconds, and say whether it was within `limit_s`."""
    waited_s = 0.0
    while not await is_done():
        if waited_s >= limit_s:
            return False
        await pacing.sleep(_POLL_S)
        waited_s += _POLL_S
    return True
