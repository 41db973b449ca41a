"""What disturbs a measurement on a shared or hot device: throttling, clocks, other processes.

A block of pairs that was disturbed does not count; the rest is shown beside the result.
"""

from collections.abc import Iterable, Sequence

from kopt.kernels.bench_result import DeviceState
from kopt.tools.devices.timer import Replays, Telemetry

POWER_CAP = "sw_power_cap"
_CLOCK_CHANGE = 0.03


def is_disturbed(replays: Replays) -> bool:
    """Return whether a throttle reason was active or a clock changed by more than 3 %.

    The power limit alone disturbs nothing: kernels that keep the tensor cores busy run at it for as
    long as they run, and the sides of a pair take turns too quickly for the clocks to follow one of
    them. What NVML does not say disturbs nothing either.
    """
    before, after = replays.before, replays.after
    clocks = ((before.sm_mhz, after.sm_mhz), (before.memory_mhz, after.memory_mhz))
    reasons = {*before.throttle, *after.throttle} - {POWER_CAP}
    return bool(reasons) or any(
        then is not None and now is not None and abs(now - then) > _CLOCK_CHANGE * then
        for then, now in clocks
    )


def device_state(telemetry: Sequence[Telemetry]) -> DeviceState:
    """Return the extremes over all of `telemetry`."""
    return DeviceState(
        sm_mhz=_range(entry.sm_mhz for entry in telemetry),
        memory_mhz=_range(entry.memory_mhz for entry in telemetry),
        temperature_c=_range(entry.temperature_c for entry in telemetry),
        throttle=tuple(dict.fromkeys(name for entry in telemetry for name in entry.throttle)),
        other_processes=max(
            (entry.other_processes for entry in telemetry if entry.other_processes is not None),
            default=None,
        ),
    )


def _range(values: Iterable[int | None]) -> tuple[int, int] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None
