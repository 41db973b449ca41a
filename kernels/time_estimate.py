"""A guessed time with the parts it is made of: an order for candidates, never a measurement."""

from typing import Literal

from .record import Record
from .status import Provenance

PartName = Literal["launch", "dram", "l2", "sm_intake", "load_store", "issue", "waiting"]
PartTimes = dict[PartName, float]
"""Microseconds. `launch`: what an empty launch takes. Then for how long, of the work behind it, a
unit is busy: `dram` and `l2` with the bytes of the whole GPU, `sm_intake` with those into the
busiest SM, `load_store` with the accesses of its warps, `issue` with their instructions. `waiting`
is the work's time in which the busiest of them is idle."""


class LaunchEstimate(Record):
    """The estimate of one launch of a plan."""

    kernel: str
    latency_us: float
    parts_us: PartTimes
    """`launch`, `waiting` and the busiest unit make up the time; the other units are busy beside
    it."""


class TimeEstimate(Record):
    """The estimate of one call: cold L2, the GPU of the data sheet, every launch of the plan.

    Two candidates for the same workload on the same GPU can be ordered by it. The number itself
    claims nothing: docs/estimate.md.
    """

    workload: str
    gpu: str
    latency_us: float
    interval_us: tuple[float, float | None]
    """Where a measured time lies, at the rate `interval_rate`; an end of None: no end is known,
    since some of the work is not followed."""
    interval_rate: float
    """Share of kept measurements that lie in such intervals (docs/estimate.md), 0 to 1."""
    resolution: float
    """Relative difference up to which two estimates are not told apart."""
    launches: tuple[LaunchEstimate, ...]
    dominant: PartName
    """What the time mostly is, by the rule of the bottleneck (docs/profile.md)."""
    missing: tuple[str, ...] = ()
    """What was not known, each with what was assumed instead."""
    provenance: Literal[Provenance.ESTIMATED] = Provenance.ESTIMATED

    def part_us(self, name: PartName) -> float:
        """Return the time of one part, summed over the launches."""
        return sum(launch.parts_us.get(name, 0.0) for launch in self.launches)
