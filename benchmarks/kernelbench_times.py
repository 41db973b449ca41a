"""Print PyTorch's times of KernelBench's tasks, by KernelBench's own script and by kopt.

    KERNELBENCH=FOLDER .venv/bin/python benchmarks/kernelbench_times.py SUITE [--set NAME]
        [--count 20] [--device cuda:0]

SUITE is a folder that `kopt import kernelbench` made and `kopt suite run --over eager --device
cuda:0` has timed, on the same GPU. KernelBench times a call of the module from Python, between two
CUDA events, after it has overwritten the L2 cache: its `measure_ref_program_time`, 100 calls, the
mean in three digits. kopt times the same call replayed from a CUDA graph over buffers that the L2
cache does not hold, and gives the median. The `--count` tasks are spread over all that were timed.
FOLDER is a checkout of KernelBench, which is not part of kopt.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from beside_kernelbench import WITHOUT_CLIENTS
from kernelbench_rows import checkout_of
from markdown_tables import grid

from kopt.config.errors import KoptError
from kopt.tools.suite.results_folder import RESULTS, ResultsFolder, find_results
from kopt.tools.suite.speeds import BASELINES
from kopt.tools.suite.suite_file import load_suite

_TIME = f"""\
{WITHOUT_CLIENTS}
import json
from contextlib import redirect_stdout

import torch
from kernelbench.timing import measure_ref_program_time

for path in sys.argv[2:]:
    with redirect_stdout(sys.stderr):
        found = measure_ref_program_time(
            path, open(path).read(), device=torch.device(sys.argv[1]), verbose=False
        )
    torch.cuda.empty_cache()
    print(json.dumps(None if found is None else found["mean"]), flush=True)
"""
"""Run by a Python of its own, which keeps a context: the mean in ms of each file, in order."""


class Pair(NamedTuple):
    """One task, timed by both."""

    task: str
    theirs_ms: float
    ours_ms: float

    @property
    def difference_percent(self) -> float:
        """By how much kopt's time is longer."""
        return 100.0 * (self.ours_ms / self.theirs_ms - 1.0)

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        times = (f"{one:.3g}" for one in (self.theirs_ms, self.ours_ms))
        return (self.task, *times, f"{self.difference_percent:+.1f}")


def eager_times(results: ResultsFolder, tasks: Sequence[str]) -> dict[str, float]:
    """Return the median time in ms of PyTorch's eager call, as kopt measured it, by task."""
    found: dict[str, float] = {}
    for task, result in results.read_all(tasks).items():
        for timed in result.times:
            for one in timed.comparisons:
                if one.baseline.name == BASELINES["eager"] and one.baseline_latency is not None:
                    found[task] = one.baseline_latency.median_us / 1e3
    return found


def spread(names: Sequence[str], count: int) -> list[str]:
    """Return `count` of the names at even distances; all of them if they are fewer."""
    if count >= len(names):
        return list(names)
    return [names[place * len(names) // count] for place in range(count)]


def summary(pairs: Sequence[Pair]) -> str:
    """Return in one line how many agree within 5 %."""
    near = sum(abs(one.difference_percent) <= 5.0 for one in pairs)
    return f"{near} of {len(pairs)} within 5 %"


def _their_times(files: Sequence[Path], checkout: Path, device: str) -> list[float | None]:
    paths = os.pathsep.join(filter(None, (str(checkout / "src"), os.getenv("PYTHONPATH"))))
    run = subprocess.run(
        [sys.executable, "-c", _TIME, device, *map(str, files)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="PyTorch's times by KernelBench and by kopt.")
    parser.add_argument("suite", type=Path)
    parser.add_argument("--set", help="which results, where there are several")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    try:
        checkout = checkout_of(os.environ.get("KERNELBENCH"))
        suite = load_suite(options.suite)
        results = find_results(options.suite / RESULTS, options.set)
    except (ValueError, KoptError) as error:
        parser.error(str(error))
    ours = eager_times(results, sorted(suite.problem_folders))
    if not ours:
        parser.error(f"{results.path}: nothing is timed over eager there")
    chosen = spread(sorted(ours), options.count)
    imported = (suite.problem_folders[name] / "import.json" for name in chosen)
    sources = [json.loads(path.read_text("utf-8"))["source"] for path in imported]
    theirs = _their_times([checkout / one for one in sources], checkout.parent, options.device)
    pairs = [
        Pair(task, one, ours[task])
        for task, one in zip(chosen, theirs, strict=True)
        if one is not None
    ]
    columns = ("task", "KernelBench ms", "kopt ms", "difference %")
    print(grid(columns, [one.cells() for one in pairs], ("task",)))
    print(f"{summary(pairs)}; kopt's times are of {results.set.device}")


if __name__ == "__main__":
    main()
