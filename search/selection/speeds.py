"""How fast a candidate is, with its interval: the one scale on which candidates are compared."""

from dataclasses import dataclass

from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import NOISE_FLOOR
from kopt.search.records.members import Member


@dataclass(frozen=True)
class Speed:
    """Greater is faster; compares within one run only.

    Measured: the paired speedup over the run's baseline with its 95 % interval. Estimated, on sim:
    calls per microsecond, and no interval, because the model gives the same each time.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval; 0 for an estimate."""
        return self.high - self.low

    def is_above(self, other: "Speed") -> bool:
        """Return whether the intervals leave no doubt that this is the greater one."""
        return self.low > other.high

    def gain_over(self, other: "Speed") -> float:
        """Return by which fraction this is the greater one: 0.03 for 3 %."""
        return self.value / other.value - 1.0


def speed_of(member: Member) -> Speed | None:
    """Return how fast `member` is; None where no time of it counts."""
    timing, cost = member.timing, member.cost
    if timing is None or not cost:
        return None
    value = 1.0 / cost
    if timing.speedup is None or timing.speedup_interval is None:
        return Speed(value, value, value)
    return Speed(value, *timing.speedup_interval)


def speed_words(member: Member) -> str:
    """Return `1.213x flashinfer (measured)` or `2.413 us (estimated)`; `no time` for neither."""
    timing = member.timing
    if timing is not None and timing.speedup is not None:
        return f"{timing.speedup.value:.3f}x {timing.speedup.unit} (measured)"
    latency = None if timing is None else timing.latency
    if latency is None or latency.value is None or latency.provenance is Provenance.MEASURED:
        return "no time"
    return f"{latency.value:.3f} us ({latency.provenance.value})"


def noise_of(member: Member) -> float:
    """Return the least relative change that its device could tell from none; 0 on sim."""
    noise = None if member.timing is None else member.timing.metric(NOISE_FLOOR)
    return 0.0 if noise is None or noise.value is None else noise.value
