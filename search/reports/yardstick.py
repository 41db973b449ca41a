"""What candidates of a run are compared by: one number each, more is better.

Measured: the speedup over the baseline, from paired replays. Estimated, on sim: how many times
shorter than the start's the estimated time is. A run never has both, and no estimate is a speedup.
"""

from dataclasses import dataclass

from kopt.kernels.status import Provenance

from .candidate_report import CandidateReport
from .run_report import RunReport


@dataclass(frozen=True)
class Yardstick:
    """How speed is told in one run."""

    start_us: float | None
    """Estimated time of the start; None where speeds are measured."""
    words: str
    """What the number is, with its provenance."""

    def speed(self, entry: CandidateReport) -> float | None:
        """Return the candidate's number; None without a time."""
        if self.start_us is None:
            return entry.speedup
        return self.start_us / entry.latency_us if entry.latency_us else None

    def interval(self, entry: CandidateReport) -> tuple[float, float] | None:
        """Return the 95 % interval; None for an estimate, which has none."""
        return entry.speedup_interval if self.start_us is None else None

    def told(self, entry: CandidateReport) -> str:
        """Return the number with what is known of its uncertainty; empty without a time."""
        speed = self.speed(entry)
        if speed is None:
            return ""
        interval = self.interval(entry)
        spread = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
        return f"{speed:.3f}x{spread}"


def yardstick_of(report: RunReport) -> Yardstick:
    """Return how speed is told in `report`."""
    if report.gpu is not None:
        baseline = report.baseline or "the baseline"
        return Yardstick(None, f"speedup over {baseline}, {Provenance.MEASURED}")
    return Yardstick(
        report.start_latency_us, f"times the speed of the start, {Provenance.ESTIMATED}"
    )


def title_of(entry: CandidateReport, yardstick: Yardstick) -> str:
    """Return a candidate in one line, for tooltips."""
    tune = ", ".join(f"{name}={value}" for name, value in entry.tune.items())
    time = "" if entry.latency_us is None else f"{entry.latency_us:.3f} us {entry.provenance}"
    parts = (f"#{entry.seq}", entry.family, entry.status or "not evaluated", time)
    return " ".join(part for part in (*parts, yardstick.told(entry), tune) if part)
