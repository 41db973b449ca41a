"""Times of work on the device, from pairs of events around it."""

from collections.abc import Sequence
from contextlib import ExitStack

from . import driver, driver_graphs
from .driver import Stream
from .driver_graphs import Event
from .sides import Call


class EventPool:
    """Pairs of timing events, made once and used again."""

    def __init__(self) -> None:
        """Start without any."""
        self._pairs: list[tuple[Event, Event]] = []
        self._resources = ExitStack()

    def time_each_us(self, works: Sequence[tuple[Call, Call]], stream: Stream) -> list[float]:
        """Return the microseconds of the second call of each pair; the first prepares, untimed.

        Everything is enqueued before the host waits once. What prepares should take the device
        longer than the host needs to enqueue, or the device waits within the time measured.

        Raises:
            CudaError: The device failed.
        """
        while len(self._pairs) < len(works):
            self._pairs.append((self._create(), self._create()))
        pairs = self._pairs[: len(works)]
        for (prepare, work), (start, end) in zip(works, pairs, strict=True):
            prepare()
            driver_graphs.record_event(start, stream)
            work()
            driver_graphs.record_event(end, stream)
        driver.synchronize_stream(stream)
        return [driver_graphs.elapsed_us(start, end) for start, end in pairs]

    def close(self) -> None:
        """Give all events back."""
        self._pairs.clear()
        self._resources.close()

    def _create(self) -> Event:
        event = driver_graphs.create_event()
        self._resources.callback(driver_graphs.destroy_event, event)
        return event
