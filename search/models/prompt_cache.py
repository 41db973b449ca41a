"""Prompt cache warm-up: the first of several calls with one prefix goes ahead until it is cached.

Calls that begin together do not share a cache entry that is not yet written: each would pay for
writing it, at 20 to 40 times the price of reading it.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from .errors import Halt

# An entry lives for at least five minutes after its last use; a little less counts as cached here.
_CACHED_FOR_S = 240.0


class CacheWarmup:
    """Holds calls back while another one writes their prefix to the provider's cache."""

    def __init__(self, halt: Halt, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin with no prefix cached."""
        self._halt = halt
        self._now_s = now_s
        self._changed = threading.Condition()  # guards both below
        self._writing: set[str] = set()
        self._used_s: dict[str, float] = {}

    @contextmanager
    def turn(self, prefix: str | None) -> Generator[Callable[[], None]]:
        """Wait for a turn; yield what to call as soon as the service has begun to answer.

        Raises:
            Stopped: The run is being stopped.
        """
        if prefix is None:
            yield lambda: None
            return
        is_writing = self._enter(prefix)

        def let_go() -> None:
            nonlocal is_writing
            if is_writing:
                is_writing = False
                self._writing.remove(prefix)
                self._changed.notify_all()

        def cached() -> None:
            with self._changed:
                self._used_s[prefix] = self._now_s()
                let_go()

        try:
            yield cached
        finally:
            with self._changed:
                let_go()

    def _enter(self, prefix: str) -> bool:
        """Wait; return whether this call is the one that writes the prefix to the cache."""
        with self._changed:
            while True:
                if self._now_s() - self._used_s.get(prefix, float("-inf")) < _CACHED_FOR_S:
                    return False
                if prefix not in self._writing:
                    self._writing.add(prefix)
                    return True
                self._halt.wait_on(self._changed)
