"""An event that one thread sets and another waits for together with pipes, in one poll()."""

import os
import weakref


class PollableEvent:
    """Set once, never cleared; its descriptor is readable from then on."""

    def __init__(self) -> None:
        """Make an event that is not set."""
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_set = False
        weakref.finalize(self, os.close, self._descriptor)

    @property
    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._is_set

    def set(self) -> None:
        """Wake everything that waits; safe from any thread, any number of times."""
        self._is_set = True
        os.eventfd_write(self._descriptor, 1)

    def fileno(self) -> int:
        """Return what poll() and select() wait for, open as long as this object lives."""
        return self._descriptor
