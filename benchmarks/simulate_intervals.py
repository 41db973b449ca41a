"""Which unit and which bootstrap suit paired times: run by hand, for docs/benchmarking.md.

Single pairs against double pairs, percentile interval against bias-corrected, on simulated times
without an effect: width, and how often the interval holds the truth, 0.
"""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

RUNS, PAIRS, RESAMPLES = 1500, 100, 2000
_NORMAL = NormalDist()
Samples = npt.NDArray[np.float64]


def doubles(order: float, rng: np.random.Generator) -> Samples:
    """Return log ratios, (RUNS, PAIRS / 2, 2): 2 % drift, 1 % walk, 0.5 % white, 2 % outliers.

    Args:
        order: What the second replay of a pair takes more than the first, a share.
        rng: Source of the noise.
    """
    replays = 2 * PAIRS
    times = rng.uniform(-0.02, 0.02, (RUNS, 1)) * np.linspace(0, 1, replays)
    times += np.cumsum(rng.normal(size=(RUNS, replays)), axis=1) * 0.01 / np.sqrt(replays)
    times += rng.normal(size=(RUNS, replays)) * 0.005
    times += (rng.random((RUNS, replays)) < 0.02) * rng.exponential(0.2, (RUNS, replays))
    times += (np.arange(replays) % 2) * order
    four = times.reshape(RUNS, -1, 4)
    outside_minus_inside = np.stack((four[..., 0] - four[..., 1], four[..., 3] - four[..., 2]), -1)
    sign = np.where(rng.random((RUNS, PAIRS // 2, 1)) < 0.5, 1.0, -1.0)
    found: Samples = sign * outside_minus_inside
    return found


def resampled_medians(samples: Samples, rng: np.random.Generator) -> Samples:
    """Return RESAMPLES medians of draws with replacement."""
    places = rng.integers(samples.size, size=(RESAMPLES, samples.size))
    medians: Samples = np.median(samples[places], axis=1)
    return medians


def percentile(samples: Samples, medians: Samples) -> tuple[float, float]:
    """Return the 95 % percentile interval."""
    del samples
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(low), float(high)


def bias_corrected(samples: Samples, medians: Samples) -> tuple[float, float]:
    """Return the 95 % bias-corrected interval, BCa with acceleration 0."""
    median = float(np.median(samples))
    below = (np.count_nonzero(medians < median) + np.count_nonzero(medians <= median)) / 2
    below /= medians.size
    bias = _NORMAL.inv_cdf(min(max(below, 1e-3), 1 - 1e-3))
    places = (_NORMAL.cdf(2 * bias - 1.96), _NORMAL.cdf(2 * bias + 1.96))
    low, high = np.quantile(medians, places)
    return float(low), float(high)


def main() -> None:
    """Print one line per disturbance, unit and interval."""
    for order in (0.0, 0.005, 0.02):
        rng = np.random.default_rng(1)
        ratios = doubles(order, rng)
        units = {"single pair": ratios.reshape(RUNS, -1), "double pair": ratios.mean(axis=-1)}
        for unit, runs in units.items():
            drawn = [resampled_medians(samples, rng) for samples in runs]
            for interval in (percentile, bias_corrected):
                found = np.asarray([interval(*pair) for pair in zip(runs, drawn, strict=True)])
                width = float(np.mean(found[:, 1] - found[:, 0])) / 2
                held = float(np.mean((found[:, 0] <= 0) & (found[:, 1] >= 0)))
                print(
                    f"second of a pair {100 * order:.1f} % slower, {unit}, {interval.__name__}: "
                    f"half-width {100 * width:.2f} %, holds the truth {100 * held:.1f} %"
                )


if __name__ == "__main__":
    main()
