"""The best kernel that comes with kopt for a kernel id, as it stands beside a run's winner."""

from kopt.kernels.record import Record
from kopt.kernels.shipped_kernels import Standing


class MeasuredWinner(Record):
    """What the receipt of a winner says of one workload."""

    latency_us: float
    """Median over its measurements of the median of one call."""
    gpu: str
    speedup: float
    baseline: str


class BestKnown(Record):
    """A kernel that comes with kopt, with the time that it was chosen by."""

    standing: Standing
    arch: str
    """The architecture that it was written for."""
    source: str
    """Its file."""
    measured: MeasuredWinner | None
    """What its sound receipt measured; None without one, as of an unproven kernel."""
    estimated_us: float | None
    """For the data sheet of the run's architecture; None on a GPU."""
