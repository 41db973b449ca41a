"""Print what a full check on the simulator costs, beside that of another checkout of kopt.

Each check is a process of its own, `kopt check FILE --level full --device sim`. CPU time is that of
the process and of all that it waits for, user and system: other work on the machine moves it least.
Checks of the two checkouts alternate, after one of each that fills the caches.

    .venv/bin/python benchmarks/bench_check.py [FILE ...] [--against CHECKOUT] [--repeats N]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

HERE = Path(__file__).resolve().parent.parent
PROBLEMS = "kernels/problems"


@dataclass(frozen=True)
class Checkout:
    """A tree of kopt as a package, and the home of its caches."""

    root: Path
    home: Path

    def check(self, file: str) -> tuple[float, float]:
        """Check a file of the tree and return the CPU seconds and wall seconds that it took."""
        packages = self.home / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        if not (packages / "kopt").exists():
            (packages / "kopt").symlink_to(self.root)
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(packages), *([inherited] if inherited else [])])
        place = {"PYTHONPATH": path, "KOPT_HOME": str(self.home / "kopt")}
        command = ["-m", "kopt", "check", str(self.root / file), "--level", "full"]
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command, "--device", "sim"],
            env=os.environ | place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.home,
        )
        assert process.stdout is not None
        said = process.stdout.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{self.root / file}: exit code {process.returncode}\n{said}")
        return used.ru_utime + used.ru_stime, time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time full checks on the simulator.")
    parser.add_argument("file", nargs="*", help="default: every packaged reference and winner")
    parser.add_argument("--against", type=Path, help="root of the checkout that is 1.00")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--home", type=Path, help="of the caches; default: a temporary folder")
    options = parser.parse_args()
    files = options.file or packaged_files()
    with tempfile.TemporaryDirectory(prefix="kopt-bench-") as temporary:
        home = (options.home or Path(temporary)).resolve()
        trees = [Checkout(HERE, home / "here")]
        if options.against:
            trees.insert(0, Checkout(options.against.resolve(), home / "against"))
        print_table(trees, files, options.repeats)


def packaged_files() -> list[str]:
    """Return the references of all packaged problems and the winners, from the root."""
    folder = HERE / PROBLEMS
    found = [*folder.glob("*/reference.cu"), *folder.glob("*/winners/*.cu")]
    return sorted(str(path.relative_to(HERE)) for path in found)


def print_table(trees: list[Checkout], files: list[str], repeats: int) -> None:
    """Print a row a file: medians of CPU and wall seconds, and the last tree's over the first's."""
    names = ["before", "now"] if len(trees) > 1 else ["now"]
    columns = [f"{name}, {unit} s" for name in names for unit in ("CPU", "wall")]
    print(f"| file | {' | '.join(columns)} | CPU | wall |\n|---|{'--:|' * (len(columns) + 2)}")
    ratios: list[tuple[float, float]] = []
    for file in files:
        taken: dict[Checkout, list[tuple[float, float]]] = {tree: [] for tree in trees}
        for tree in trees:
            tree.check(file)
        for _ in range(repeats):
            for tree in trees:
                taken[tree].append(tree.check(file))
        medians = [tuple(map(median, zip(*taken[tree], strict=True))) for tree in trees]
        ratios.append((medians[-1][0] / medians[0][0], medians[-1][1] / medians[0][1]))
        cells = [f"{value:.2f}" for pair in medians for value in pair]
        cells += [f"{value:.2f}" for value in ratios[-1]]
        print(f"| {file.removeprefix(PROBLEMS + '/')} | {' | '.join(cells)} |", flush=True)
    means = [f"{geometric_mean(column):.2f}" for column in zip(*ratios, strict=True)]
    print(f"| geometric mean |{' |' * len(columns)} {' | '.join(means)} |")


if __name__ == "__main__":
    main()
