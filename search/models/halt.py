"""The stop signal of a run: Ctrl-C ends the waiting of all its threads at once."""

import threading

from .errors import Stopped

_LOOK_EVERY_S = 0.1  # a thread that waits for something else looks this often


class Halt:
    """A stop signal, set once by the main thread and checked by every thread that waits."""

    def __init__(self) -> None:
        """Make a signal that is not set."""
        self._event = threading.Event()

    def stop(self) -> None:
        """End all waiting, for good."""
        self._event.set()

    @property
    def is_stopped(self) -> bool:
        """Whether the run is being stopped."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise if the signal is set.

        Raises:
            Stopped: The run is being stopped.
        """
        if self._event.is_set():
            raise Stopped("the run is being stopped")

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`.

        Raises:
            Stopped: The run is being stopped, before or meanwhile.
        """
        self._event.wait(seconds)
        self.check()

    def wait_on(self, changed: threading.Condition, seconds: float = _LOOK_EVERY_S) -> None:
        """Wait for a notification from other threads, for a moment at most.

        Raises:
            Stopped: The run is being stopped.
        """
        changed.wait(min(seconds, _LOOK_EVERY_S))
        self.check()
