"""The time for which a piece of work has held a GPU, over all threads that it uses.

The holder of a GPU's lock counts its time here; the simulator never does. Waiting for the lock is
not counted.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class GpuTime:
    """Seconds so far; may be added to from several threads."""

    seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, seconds: float) -> None:
        """Count `seconds` more."""
        with self._lock:
            self.seconds += seconds


_METER: ContextVar[GpuTime | None] = ContextVar("gpu time", default=None)


@contextmanager
def metered_gpu_time() -> Generator[GpuTime]:
    """Give what counts the GPU time of all that happens inside, pools of threads included."""
    meter = GpuTime()
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


def count_gpu_time(seconds: float) -> None:
    """Add the `seconds` for which a GPU was held to the open meter; nothing happens without one."""
    meter = _METER.get()
    if meter is not None:
        meter.add(seconds)
