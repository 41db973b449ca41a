"""Measures a GPU for the time model: latencies, empty launches, block starts, copies by size."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.calibration import CalibratedValue, GpuCalibration
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.record import because
from kopt.tools.bench.plain_copy import copy_case, measure_copy
from kopt.tools.bench.timed_case import TimedCase, timing_request
from kopt.tools.bench.unpaired_times import time_sides
from kopt.tools.devices.timer import EmptySide, TimingDevice, TimingFailure

from .latencies import measure_latencies

_MIB = 1 << 20
COPIED_MIB = (1, 4, 16, 64, 256)
"""Bytes that a copy moves, half of them read."""
_CARRIER_BYTES = 2 * _MIB
"""Bytes of the buffers beside empty launches, so few that a graph holds many calls."""
_THREADS = 128
_WAVES = 64
"""Blocks of an SM in the launch that tells what starting one costs."""
_LEAST_PDL = (9, 0)


def calibrate(
    device: TimingDevice, settings: Settings, show: Callable[[str], None] = ignore
) -> GpuCalibration:
    """Return what was measured on `device`; it takes less than a minute.

    Args:
        device: The GPU, at rest.
        settings: Where the compiler is, and its cache.
        show: Told of each part before it begins.

    Raises:
        ToolError: A kernel does not compile.
        InfraError: The device failed, or was not at rest.
        SetupError: There is no compiler, or KOPT_HOME cannot be written.
    """
    begun = time.monotonic()
    show("latencies, 1 of 3")
    values = [*measure_latencies(device, settings)]
    show("empty launches, 2 of 3")
    values += _launches(device, settings)
    for mib in COPIED_MIB:
        show(f"copies, 3 of 3: {mib} MiB")
        copy = measure_copy(mib * _MIB // 2, mib * _MIB // 2, device, settings)
        gb_s, meaning = copy.gb_s, "read and written by the fastest of several copies, cold L2"
        values.append(_value(f"copy_{mib}_mib", gb_s, "GB/s", meaning))
    return GpuCalibration(
        device=device.facts,
        day=datetime.now(UTC).date().isoformat(),
        values=tuple(values),
        elapsed_s=time.monotonic() - begun,
    )


def _launches(device: TimingDevice, settings: Settings) -> list[CalibratedValue]:
    case = copy_case(_CARRIER_BYTES // 2, _CARRIER_BYTES // 2, device, settings)
    sms = device.facts.sm_count
    shapes = [(1, False), (sms, False), (_WAVES * sms, False)]
    if device.facts.compute_capability >= _LEAST_PDL:
        shapes.append((1, True))
    sides = tuple(_empty(case, blocks, pdl=pdl) for blocks, pdl in shapes)
    timed = time_sides(case, timing_request(case, sides))
    if isinstance(timed, TimingFailure):
        outcome = timed.outcome
        raise InfraError(f"empty kernels fail: {outcome.status}{because(outcome.diagnostics)}")
    us = [latency.median_us for _, latency in timed]
    start_ns = 1e3 * (us[2] - us[1]) / (_WAVES - 1)
    found = [
        _value("null_kernel", us[0], "us", "an empty launch of one block in a graph"),
        _value("full_null_kernel", us[1], "us", f"one of a block of {_THREADS} threads on each SM"),
        _value("block_start", start_ns, "ns", "a block more on each SM, empty"),
    ]
    if len(us) > len(found):
        meaning = "an empty launch by programmatic dependent launch"
        found.append(_value("dependent_null_kernel", us[3], "us", meaning))
    return found


def _empty(case: TimedCase, blocks: int, *, pdl: bool) -> EmptySide:
    launch = Launch(
        kernel="empty", grid=(blocks, 1, 1), block=(_THREADS, 1, 1), pdl=pdl, arguments=()
    )
    workload = case.workload
    plan = LaunchPlan(workload=workload.name, axes=workload.axes, defines={}, launches=(launch,))
    return EmptySide(plan=plan)


def _value(name: str, value: float, unit: str, meaning: str) -> CalibratedValue:
    return CalibratedValue(name=name, value=round(value, 3), unit=unit, meaning=meaning)
