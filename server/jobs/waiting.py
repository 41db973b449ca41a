"""Waiting for a job and telling of it meanwhile; how to pause between two looks is the caller's."""

import asyncio
from collections.abc import Awaitable, Callable

from .jobs import Watch
from .progress_beat import ProgressBeat
from .records import JobView

_BEAT_S = 2.0
"""Whoever watches a job hears of it this often, also when nothing new is known."""

Look = Callable[[], Awaitable[JobView]]
Pause = Callable[[JobView, float], Awaitable[None]]
"""Returns when another look is due, at most so many seconds later."""


async def wait_until_over(look: Look, wait_s: float, watch: Watch | None, pause: Pause) -> JobView:
    """Return the job when it is over, or as it stands after `wait_s`.

    Args:
        look: Returns the job as it stands.
        wait_s: Longest wait; without any, the job is looked at once.
        watch: Told how far it is, every few seconds at least; `done` rises each time.
        pause: Given the job as last seen and the longest pause, in seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    beat = ProgressBeat(_BEAT_S)
    while True:
        view = await look()
        if watch is not None and (told := beat.next(view, loop.time())) is not None:
            await watch(told)
        left = deadline - loop.time()
        if view.is_over or left <= 0:
            return view
        await pause(view, min(_BEAT_S, left))
