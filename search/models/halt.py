"""The one word that ends all waiting of a run: what Ctrl-C says to every thread at once."""

import threading

from .call_errors import Stopped

_LOOK_EVERY_S = 0.1  # whoever waits for something else asks so often


class Halt:
    """Given once, by the main thread; asked by everything that waits or works elsewhere."""

    def __init__(self) -> None:
        """Let everything go on."""
        self._event = threading.Event()

    def stop(self) -> None:
        """End all waiting, for good."""
        self._event.set()

    @property
    def is_stopped(self) -> bool:
        """Whether the run is being stopped."""
        return self._event.is_set()

    def check(self) -> None:
        """Go on, or raise.

        Raises:
            Stopped: The run is being stopped.
        """
        if self._event.is_set():
            raise Stopped("the run is being stopped")

    def wait(self, seconds: float) -> None:
        """Wait so long.

        Raises:
            Stopped: The run is being stopped, before or meanwhile.
        """
        self._event.wait(seconds)
        self.check()

    def wait_on(self, changed: threading.Condition, seconds: float = _LOOK_EVERY_S) -> None:
        """Wait for news from other threads, for a moment at most; look then what has changed.

        Raises:
            Stopped: The run is being stopped.
        """
        changed.wait(min(seconds, _LOOK_EVERY_S))
        self.check()
