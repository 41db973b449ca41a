"""How often the verdict rule errs, on simulated times: run by hand, for docs/benchmarking.md.

Every run draws replay times with drift, a random walk, white noise, outliers, an effect of the
place within a pair, and a constant difference between two captures of one kernel; then it goes
through the code that decides: double pairs, intervals, A/A floor, extension, verdict.
"""

from collections import Counter
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import numpy.typing as npt

from kopt.kernels.bench_result import LEAST_THRESHOLD, noise_threshold
from kopt.kernels.status import Verdict
from kopt.tools.bench.intervals import median_interval
from kopt.tools.bench.measurement import NOISE_PAIRS
from kopt.tools.bench.request import MAX_PAIRS, MIN_PAIRS
from kopt.tools.bench.verdict import decide, next_target

RUNS = 2000
Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """Shares of a time; see tests/support/scripted_timer.py for the same with other means."""

    white: float
    drift: float = 0.02
    walk: float = 0.01
    outliers: float = 0.02
    order: float = 0.0
    capture: float = 0.0
    """Standard deviation of the constant difference between two captures."""


MODELS = {
    "quiet: white 0.5 %": Noise(white=0.005),
    "as measured: white 0.8 %": Noise(white=0.008, capture=0.0005),
    "captures differ by 0.1 %": Noise(white=0.005, capture=0.001),
    "the second of a pair 0.5 % slower": Noise(white=0.005, order=0.005),
    "loud: white 2 %": Noise(white=0.02, outliers=0.05),
}
EFFECTS = (0.0, 0.003, 0.005, 0.01, -0.01)


def log_ratios(noise: Noise, effect: float, rng: np.random.Generator) -> list[float]:
    """Return ln(baseline / candidate) of MAX_PAIRS pairs; above 0 the candidate is faster."""
    replays = 2 * MAX_PAIRS
    times = rng.uniform(-noise.drift, noise.drift) * np.arange(replays) / 200
    times += np.cumsum(rng.normal(size=replays)) * noise.walk / np.sqrt(200)
    times += rng.normal(size=replays) * noise.white
    times += (rng.random(replays) < noise.outliers) * rng.exponential(0.2, replays)
    times += (np.arange(replays) % 2) * noise.order
    doubles = times.reshape(-1, 4)
    outside_minus_inside = np.stack(
        (doubles[:, 0] - doubles[:, 1], doubles[:, 3] - doubles[:, 2]), axis=1
    )
    baseline_outside = np.where(rng.random(len(doubles)) < 0.5, 1.0, -1.0)[:, None]
    ratios = baseline_outside * outside_minus_inside + effect + rng.normal() * noise.capture
    found: list[float] = ratios.reshape(-1).tolist()
    return found


@dataclass(frozen=True)
class Run:
    """How one simulated comparison ended."""

    verdict: Verdict
    pairs: int
    first_half_width: float
    """At MIN_PAIRS."""
    threshold: float
    """In the end."""


def verdict_of(noise: Noise, effect: float, seed: int) -> Run:
    """Return what the rule says of one run."""
    rng = np.random.default_rng(seed)
    main, same = log_ratios(noise, effect, rng), log_ratios(noise, 0.0, rng)
    target: int | None = MIN_PAIRS
    pairs, threshold = 0, LEAST_THRESHOLD
    first = median_interval(main[:MIN_PAIRS], seed).half_width
    settled: Verdict | None = None
    while target is not None:
        pairs = target
        if threshold > LEAST_THRESHOLD or pairs == MIN_PAIRS:
            floor = median_interval(same[: min(pairs, NOISE_PAIRS)], seed)
            threshold = noise_threshold(floor.median, floor.half_width)
        settled = decide(median_interval(main[:pairs], seed), threshold)
        noise_is_open = threshold > LEAST_THRESHOLD and pairs < NOISE_PAIRS
        if settled is not None and not noise_is_open:
            break
        target = next_target(pairs, MAX_PAIRS)
    return Run(settled or Verdict.INCONCLUSIVE, pairs, first, threshold)


def main() -> None:
    """Print one line per model and effect."""
    print(f"{RUNS} runs each; half-width at {MIN_PAIRS} pairs, threshold and pairs: medians")
    for label, noise in MODELS.items():
        for effect in EFFECTS:
            runs = [verdict_of(noise, effect, seed) for seed in range(RUNS)]
            counts = Counter(run.verdict for run in runs)
            shares = ", ".join(
                f"{verdict} {100 * counts[verdict] / RUNS:.2f} %"
                for verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.INCONCLUSIVE)
            )
            pairs = median(run.pairs for run in runs)
            first = median(run.first_half_width for run in runs)
            threshold = median(run.threshold for run in runs)
            print(
                f"{label:36s} effect {100 * effect:+.1f} %: {shares}; half-width "
                f"{100 * first:.2f} %, threshold {100 * threshold:.2f} %, {pairs:.0f} pairs"
            )
    start = perf_counter()
    median_interval(log_ratios(MODELS["quiet: white 0.5 %"], 0.0, np.random.default_rng(0)), 0)
    print(f"one interval of {MAX_PAIRS} pairs: {1e3 * (perf_counter() - start):.1f} ms")


if __name__ == "__main__":
    main()
