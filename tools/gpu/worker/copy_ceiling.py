"""The copy bandwidth of the device: what percentages of an achievable bandwidth refer to."""

from contextlib import ExitStack
from statistics import median

from . import driver
from .driver import Stream
from .replayer import EventPool

LEAST_BYTES = 512 << 20
L2_MULTIPLE = 4
_COPIES = 15


def copy_bytes(l2_bytes: int, free_bytes: int) -> int:
    """Return the bytes of one copy: far more than L2 holds, at most a quarter of what is free."""
    return min(max(LEAST_BYTES, L2_MULTIPLE * l2_bytes), free_bytes // 4)


def copy_ceiling_gb_s(l2_bytes: int, stream: Stream) -> float:
    """Return 1e9 bytes per second of a copy within device memory, reads and writes counted.

    The median of several copies of one buffer into another by the driver's own copy.

    Raises:
        CudaError: The device failed, or has no memory to spare.
    """
    free_bytes, _ = driver.call("cuMemGetInfo")
    size_bytes = copy_bytes(l2_bytes, int(free_bytes))
    with ExitStack() as resources:
        events = EventPool()
        resources.callback(events.close)
        source = driver.allocate(size_bytes)
        resources.callback(driver.free, source)
        target = driver.allocate(size_bytes)
        resources.callback(driver.free, target)
        driver.fill(source, 0x5A, size_bytes, stream)  # memory never written may read faster

        def copy() -> None:
            driver.call("cuMemcpyDtoDAsync", target, source, size_bytes, stream)

        times = events.time_each_us([(copy, copy)] * _COPIES, stream)
    return 2 * size_bytes / (median(times) * 1e3)
