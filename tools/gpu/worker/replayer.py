"""Restores and replays graphs over the buffer sets, and times them by pairs of events."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median

from . import driver
from .buffer_sets import BufferSets
from .context import WorkerContext
from .driver import Stream
from .failure import step
from .replay_graphs import CallGraph
from .sides import Call


class EventPool:
    """Pairs of timing events, made once and used again."""

    def __init__(self) -> None:
        """Start without any."""
        self._pairs: list[tuple[int, int]] = []
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
            driver.call("cuEventRecord", start, stream)
            work()
            driver.call("cuEventRecord", end, stream)
        driver.synchronize_stream(stream)
        return [float(driver.call("cuEventElapsedTime", *pair)) * 1e3 for pair in pairs]  # from ms

    def close(self) -> None:
        """Give all events back."""
        self._pairs.clear()
        self._resources.close()

    def _create(self) -> int:
        flags = driver.enum("CUevent_flags", "CU_EVENT_DEFAULT").value
        event = int(driver.call("cuEventCreate", flags))
        self._resources.callback(driver.call, "cuEventDestroy", event)
        return event


_WARM_REPLAY_US = 100.0
"""Least duration of one timed warm replay: 200 times the resolution of an event."""
_WARM_REPLAYS = 9
_WARM_CALLS = (16, 1024)
"""Fewest and most calls of a warm replay of a kernel that takes less than that."""


class Replayer:
    """Knows the sets of a session, not its sides."""

    def __init__(self, sets: BufferSets, worker: WorkerContext, resources: ExitStack) -> None:
        """Capture the restore of all sets.

        Raises:
            ExecutionFailure: That fails.
        """
        self._sets = sets
        self._stream = worker.stream
        ordinal = worker.facts.index
        with step("run"):
            has_persisting_l2 = driver.device_attribute(ordinal, "MAX_PERSISTING_L2_CACHE_SIZE")
        self._has_persisting_l2 = has_persisting_l2 > 0
        self._events = EventPool()
        resources.callback(self._events.close)
        self._restore = CallGraph(
            (partial(sets.restore, k) for k in range(sets.count)), self._stream
        )
        resources.callback(self._restore.close)

    def replay(self, graphs: Sequence[CallGraph]) -> tuple[float, ...]:
        """Return microseconds per call of each graph, replayed in order, each after a restore.

        Raises:
            ExecutionFailure: The device failed.
        """
        with step("run"):
            if self._has_persisting_l2:
                driver.switch_persisting_l2_off()
            # One restore more keeps the device busy while the host enqueues the first replay.
            self._restore.launch()
            works = [(self._restore.launch, graph.launch) for graph in graphs]
            times_us = self._events.time_each_us(works, self._stream)
        return tuple(time_us / self._sets.count for time_us in times_us)

    def warm_us(self, call: Call) -> float:
        """Return microseconds of one call, repeated over the set that no replay uses.

        In-place operands change from call to call; the time of a call does not depend on that
        here, and no output of these calls is compared.

        Raises:
            ExecutionFailure: The device failed.
        """
        warm_us = self._repeated_us(call, self._warm_calls(call), rounds=_WARM_REPLAYS)
        self._sets.restore(self._sets.warm_set)
        return warm_us

    def _warm_calls(self, call: Call) -> int:
        """Return the calls of one timed warm replay: one, where a call takes long enough itself."""
        if self._repeated_us(call, 1, rounds=1) >= _WARM_REPLAY_US:
            return 1
        least, most = _WARM_CALLS
        trial_us = self._repeated_us(call, least, rounds=1)
        return min(max(int(_WARM_REPLAY_US / max(trial_us, 1e-3)) + 1, least), most)

    def _repeated_us(self, call: Call, calls: int, rounds: int) -> float:
        """Return microseconds per call, median of `rounds` replays of `calls` calls."""
        graph = CallGraph([call] * calls, self._stream)

        def prepare() -> None:
            self._sets.restore(self._sets.warm_set)
            graph.launch()  # brings what fits into L2

        with step("run"):
            try:
                works = [(prepare, graph.launch)] * rounds
                times_us = self._events.time_each_us(works, self._stream)
            finally:
                graph.close()
        return median(times_us) / calls
