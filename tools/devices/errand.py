"""A piece of work that keeps to one GPU where a device is several of them.

What is measured in it compares, because it is of one GPU, and its results name that GPU. Threads
that the work starts belong to it (`config/thread_pool.py`). Work outside of any errand keeps to the
one GPU that its device began with.
"""

import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Errand:
    """One evaluation."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    endings: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called at its end by whom it was carried out with."""


_CURRENT: ContextVar[Errand | None] = ContextVar("errand", default=None)


def current_errand() -> Errand | None:
    """Return the errand that this thread works on; None outside of any."""
    return _CURRENT.get()


@contextmanager
def one_errand() -> Generator[None]:
    """Make one errand of all that happens inside."""
    errand = Errand()
    token = _CURRENT.set(errand)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        for end in errand.endings:
            end()
