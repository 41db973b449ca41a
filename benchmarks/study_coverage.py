"""How often the intervals of a study hold the truth: simulated studies of known mean.

The logarithm of a speed is the sum of what its kernel gives (standard deviation 0.5), its repeat
(0.2) and the run itself (0.3); the truth is 0. docs/study.md has the table.

    .venv/bin/python benchmarks/study_coverage.py
"""

from random import Random
from statistics import fmean

from kopt.search.study.study_statistics import Place, RunGrid, interval_of

STUDIES, DRAWS = 400, 400
SIZES = ((2, 2), (3, 2), (4, 2), (4, 3), (6, 4), (10, 3))


def coverage(kernels: int, repeats: int) -> float:
    """Return the share of simulated studies whose 95 % interval of the mean holds 0."""
    return fmean(_holds(RunGrid(_names(kernels), tuple(range(repeats))), n) for n in range(STUDIES))


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"kernel_{number}" for number in range(count))


def _holds(grid: RunGrid, seed: int) -> bool:
    random = Random(seed)
    of_kernel = {kernel: random.gauss(0.0, 0.5) for kernel in grid.kernels}
    of_repeat = {repeat: random.gauss(0.0, 0.2) for repeat in grid.repeats}
    speeds: dict[Place, float] = {
        (kernel, repeat): of_kernel[kernel] + of_repeat[repeat] + random.gauss(0.0, 0.3)
        for kernel, repeat in grid.places
    }
    interval = interval_of(lambda places: fmean(map(speeds.__getitem__, places)), grid, seed, DRAWS)
    return interval is not None and interval[0] <= 0.0 <= interval[1]


if __name__ == "__main__":
    print("kernels  repeats  share of 95 % intervals that hold the truth")
    for size in SIZES:
        print(f"{size[0]:7}  {size[1]:7}  {coverage(*size):.2f}")
