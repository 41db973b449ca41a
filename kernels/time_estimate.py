"""A guessed time with the parts it is made of: an order for candidates, never a measurement."""

from typing import Literal

from .record import Record
from .status import Provenance

PartName = Literal[
    "launch",
    "fill",
    "barriers",
    "block_starts",
    "dram",
    "l2",
    "sm_intake",
    "load_store",
    "issue",
    "latency",
]


class TimePart(Record):
    """One term of the model."""

    name: PartName
    """`launch` empty launches; `fill` first answer from memory; `barriers` waiting at them;
    `block_starts` handing the grid out to the SMs; `dram`, `l2` bytes over the whole GPU;
    `sm_intake` bytes into the busiest SM; `load_store`, `issue` instructions of the busiest SM;
    `latency` round trips that too few bytes in flight hide."""
    time_us: float
    overlaps: bool
    """Whether it runs at the same time as the other overlapping parts; else it adds up."""
    evidence: str
    """The numbers that it comes from."""


class LaunchEstimate(Record):
    """The estimate of one launch of a plan."""

    kernel: str
    latency_us: float
    parts: tuple[TimePart, ...]
    counts_us: float | None = None
    """What the parts combine to, where the machine code says another time; else None."""


class TimeEstimate(Record):
    """The estimate of one call: cold L2, the GPU of the data sheet, every launch of the plan.

    Two candidates for the same workload on the same GPU can be ordered by it. The number itself
    claims nothing: docs/estimate.md.
    """

    workload: str
    gpu: str
    latency_us: float
    method: Literal["machine_code", "counts"] = "counts"
    """What the time is from: the machine code, followed warp by warp and timed on one SM, or the
    parts. These are from counts in both, and say what the time may be made of."""
    resolution: float = 0.0
    """Relative difference up to which two estimates by this method are not told apart."""
    launches: tuple[LaunchEstimate, ...]
    dominant: PartName
    """The part with the most time, over all launches."""
    missing: tuple[str, ...] = ()
    """What was not known, each with what was assumed instead."""
    provenance: Literal[Provenance.ESTIMATED] = Provenance.ESTIMATED

    @property
    def counts_us(self) -> float:
        """The time that the parts combine to: what counts alone say."""
        told = (one.counts_us for one in self.launches)
        known = zip(told, self.launches, strict=True)
        return sum(one.latency_us if counted is None else counted for counted, one in known)

    def part_us(self, name: PartName) -> float:
        """Return the time of one part, summed over the launches."""
        parts = (part for launch in self.launches for part in launch.parts)
        return sum(part.time_us for part in parts if part.name == name)
