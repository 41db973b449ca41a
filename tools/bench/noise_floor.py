"""The noise floor: how far the baseline is from a second capture of itself.

Measured in the same session and with the same protocol as the comparison that first needs it, and
kept for a day for the device, driver, kernel and baseline path. No floor is below what counts as a
difference at all (`LEAST_THRESHOLD`), so a lucky one makes nobody faster; a wide one, as beside a
neighbor's work, is used but not kept.
"""

from datetime import UTC, datetime

from kopt.kernels.bench_result import BaselinePath, NoiseFloor

from .intervals import Interval
from .kept_records import keep, load_kept
from .timed_case import TimedCase

_WIDEST_KEPT = 0.01


def known_floor(case: TimedCase, path: BaselinePath) -> NoiseFloor | None:
    """Return the floor that was measured within the last day, or None."""
    kept = load_kept(case.settings, _key(case, path), NoiseFloor)
    return None if kept is None else kept.model_copy(update={"cached": True})


def fresh_floor(interval: Interval, pairs: int) -> NoiseFloor:
    """Return the floor of an A/A comparison that has just ended."""
    return NoiseFloor(
        median=interval.median,
        half_width=interval.half_width,
        pairs=pairs,
        cached=False,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def keep_floor(case: TimedCase, path: BaselinePath, floor: NoiseFloor) -> None:
    """Keep a fresh floor, unless it is too wide to be the device's own.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    if floor.threshold <= _WIDEST_KEPT:
        keep(case.settings, _key(case, path), floor)


def _key(case: TimedCase, path: BaselinePath) -> dict[str, str]:
    facts = case.device.facts
    return {
        "kind": "noise_floor/1",
        "device": facts.uuid,
        "driver": facts.driver_version,
        "kernel": case.kernel,
        "baseline": path.name,
        "pdl": str(path.pdl),
    }
