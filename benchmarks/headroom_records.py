"""What `bench_headroom.py` measures, as records that are kept between its calls.

All times are medians of one call with a cold L2, in microseconds.
"""

from typing import Literal

from pydantic import Field

from kopt.kernels.bench_result import Latency, RejectedBaseline
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record


class PathTime(Record):
    """One library path that computes what the oracle does."""

    name: str
    pdl: bool
    library: str | None
    latency: Latency
    differences: tuple[str, ...] = ()
    """Why it is not like for like; such a path is shown and never the baseline."""

    @property
    def label(self) -> str:
        """`flashinfer_cute +PDL`."""
        return f"{self.name}{' +PDL' if self.pdl else ''}"


class PathTimes(Record):
    """One kernel: its library paths, its reference kernel and empty kernels, in one session."""

    paths: tuple[PathTime, ...]
    rejected: tuple[RejectedBaseline, ...]
    reference: Latency
    empty_us: float
    """An empty kernel of one warp."""
    empty_pdl_us: float
    """The same with programmatic dependent launch, which triggers at once."""

    @property
    def baseline(self) -> PathTime:
        """The fastest library path that is like for like, else the reference kernel."""
        like = [path for path in self.paths if not path.differences]
        stand_in = PathTime(name="reference", pdl=False, library=None, latency=self.reference)
        return min(like, key=lambda path: path.latency.median_us, default=stand_in)


class CopyTime(Record):
    """The fastest of several copies of half as many bytes into another half."""

    total_bytes: int
    """Read and written."""
    latency: Latency
    block: int
    vectors: int
    """Words of 16 bytes a thread."""
    pdl: bool

    @property
    def gb_s(self) -> float:
        """1e9 bytes per second."""
        return self.total_bytes / self.latency.median_us / 1e3


class HeadroomRow(Record):
    """One kernel before anybody made it faster."""

    kernel: str
    rows: int
    total_bytes: int
    """Of one call, from the byte model."""
    measured_at: str
    """UTC, ISO 8601."""
    times: PathTimes
    copy_time: CopyTime
    """A copy of as many bytes."""
    ceiling_gb_s: float
    """The driver's copy of at least 512 MB, reads and writes counted."""

    @property
    def floor_us(self) -> float:
        """max(empty kernel, bytes / ceiling): no kernel of one launch takes less."""
        empty_us = min(self.times.empty_us, self.times.empty_pdl_us)
        return max(empty_us, self.total_bytes / self.ceiling_gb_s / 1e3)

    @property
    def headroom(self) -> float:
        """Fastest baseline / floor: the speedup that is left at most."""
        return self.times.baseline.latency.median_us / self.floor_us

    @property
    def over_copy(self) -> float:
        """Fastest baseline / a copy of as many bytes: the speedup that a copy has already."""
        return self.times.baseline.latency.median_us / self.copy_time.latency.median_us


class Headroom(Record):
    """All that was measured on one device, in one call or several."""

    schema_: Literal["kopt.headroom/1"] = Field(default="kopt.headroom/1", alias="schema")
    gpu: DeviceFacts
    planned: int
    rows: tuple[HeadroomRow, ...] = ()
    copies: tuple[CopyTime, ...] = ()
    failed: dict[str, str] = Field(default_factory=dict[str, str])
    """Kernels without a row, and why; tried again by the next call."""
