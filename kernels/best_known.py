"""The best kernel that is known for a kernel id beside the one at hand: shipped, or of a run."""

from typing import Literal

from pydantic import Field

from .record import Record


class MeasuredWinner(Record):
    """What was measured of a kernel for one workload."""

    latency_us: float
    """Median over its measurements of the median of one call."""
    gpu: str
    speedup: float | None
    """Against `baseline`; None where nothing was compared."""
    baseline: str | None


class BestKnown(Record):
    """A kernel that is there already, with the time that it was chosen by."""

    standing: Literal["winner", "unproven", "run"]
    """winner: promoted, with a receipt. unproven: no GPU has run it. run: of an earlier search."""
    arch: str
    """The architecture that it was written for."""
    source: str
    """Its file; of a run the address of the candidate."""
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The tune values that the times are of; {} for its defaults."""
    measured: MeasuredWinner | None
    """What its sound receipt, or the run, measured; None without one, as of an unproven kernel."""
    estimated_us: float | None
    """For the data sheet of the architecture asked for; None on a GPU."""

    @property
    def time_us(self) -> float:
        """The time that known kernels are ordered by: estimated, else measured; else infinity."""
        if self.estimated_us is not None:
            return self.estimated_us
        return float("inf") if self.measured is None else self.measured.latency_us

    @property
    def label(self) -> str:
        """`winner for sm_90a`, or `best of earlier runs for sm_90a`."""
        standing = "best of earlier runs" if self.standing == "run" else self.standing
        return f"{standing} for {self.arch}"
