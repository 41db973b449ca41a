"""How well estimated times order kept programs, and how far off they are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations
from math import exp, log
from statistics import mean, median

APART = 0.03
"""Two programs of a kernel are a pair if their measured times differ by this at least."""
SAME = 0.003
"""For the rank correlation a pair counts from this difference on: what measurements repeat to."""


@dataclass(frozen=True)
class Point:
    """A program: its kernel, and its time on a GPU and in the model."""

    kernel: str
    measured_us: float
    estimated_us: float

    @property
    def error(self) -> float:
        """ln(estimated / measured)."""
        return log(self.estimated_us / self.measured_us)


@dataclass
class Score:
    """Counts over the pairs of each kernel."""

    right: int = 0
    wrong: int = 0
    tied: int = 0
    errors: list[float] = field(default_factory=list[float])
    taus: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def pairs(self) -> int:
        """Pairs that a measurement tells apart."""
        return self.right + self.wrong + self.tied

    @property
    def off_by(self) -> float:
        """Mean factor between estimate and measurement, less 1."""
        return exp(mean(map(abs, self.errors))) - 1

    @property
    def tau(self) -> float:
        """Median over the kernels of Kendall's rank correlation."""
        return median(self.taus.values())

    def row(self) -> list[str]:
        """Return the cells of a table: shares of pairs, correlation, error."""
        shares = [f"{count / self.pairs:.0%}" for count in (self.right, self.wrong, self.tied)]
        return [str(self.pairs), *shares, f"{self.tau:+.2f}", f"{self.off_by:.0%}"]


HEADS = ("pairs", "in order", "wrong", "tied", "tau, median", "off by")


def score(points: Iterable[Point], resolution: float) -> Score:
    """Return the score of programs; estimates nearer than `resolution` are tied."""
    by_kernel: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        by_kernel[point.kernel].append(point)
    found = Score()
    for kernel, own in by_kernel.items():
        found.errors += [point.error for point in own]
        _count_pairs(own, resolution, found)
        tau = _tau(own)
        if tau is not None:
            found.taus[kernel] = tau
    return found


def _count_pairs(own: Sequence[Point], resolution: float, found: Score) -> None:
    for one, other in combinations(own, 2):
        measured = log(one.measured_us / other.measured_us)
        if abs(measured) < log(1 + APART):
            continue
        step = log(one.estimated_us / other.estimated_us)
        if abs(step) < log(1 + resolution):
            found.tied += 1
        elif step * measured > 0:
            found.right += 1
        else:
            found.wrong += 1


def _tau(own: Sequence[Point]) -> float | None:
    """Return Kendall's tau-a over pairs that measurements tell apart; None where there is none."""
    total = concordant = 0
    for one, other in combinations(own, 2):
        measured = log(one.measured_us / other.measured_us)
        if abs(measured) < log(1 + SAME):
            continue
        step = log(one.estimated_us / other.estimated_us) * measured
        total += 1
        concordant += (step > 0) - (step < 0)
    return concordant / total if total else None


def picks(points: Iterable[Point]) -> dict[str, float]:
    """Return for each kernel how much slower than its fastest program the one is that is picked.

    The least estimate is picked; 1.0 is the fastest by measurement.
    """
    by_kernel: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        by_kernel[point.kernel].append(point)
    return {
        kernel: min(own, key=lambda one: one.estimated_us).measured_us
        / min(one.measured_us for one in own)
        for kernel, own in by_kernel.items()
    }


def ratio_interval(points: Sequence[Point], rate: float) -> tuple[float, float]:
    """Return where measured / estimated lies for `rate` of the programs, the tails alike.

    Each kernel counts as much as another, however many programs it has.
    """
    by_kernel = Counter(point.kernel for point in points)
    weighted = sorted((-point.error, 1 / by_kernel[point.kernel]) for point in points)
    whole = float(len(by_kernel))
    places = accumulate(weight for _, weight in weighted)
    shares = [(error, place / whole) for (error, _), place in zip(weighted, places, strict=True)]
    tails = ((1 - rate) / 2, (1 + rate) / 2)
    least, most = (next(error for error, share in shares if share >= tail) for tail in tails)
    return exp(least), exp(most)


def share_inside(points: Sequence[Point], interval: tuple[float, float]) -> list[float]:
    """Return for each kernel which part of its programs has measured / estimated in an interval."""
    inside: dict[str, list[bool]] = defaultdict(list)
    for point in points:
        inside[point.kernel].append(interval[0] <= exp(-point.error) <= interval[1])
    return [mean(own) for own in inside.values()]


def loss(points: Sequence[Point]) -> float:
    """Return what a fit makes small: half of the error of each kernel's mean, twice its spread.

    Order within a kernel counts four times as much as its level.
    """
    by_kernel: dict[str, list[float]] = defaultdict(list)
    for point in points:
        by_kernel[point.kernel].append(point.error)
    terms = [
        abs(mean(own)) / 2 + 2 * mean(abs(error - mean(own)) for error in own)
        for own in by_kernel.values()
    ]
    return mean(terms)
