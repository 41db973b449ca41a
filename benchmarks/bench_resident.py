"""Print what a resident evaluator gains: whole commands on a GPU with it and without.

    .venv/bin/python benchmarks/bench_resident.py [--device cuda:0] [--kernel ID] [--json FILE]

Each figure is the wall time of commands as a user types them, Python's start included, with all
that is built once built before. The targets are those of docs/benchmarks.md. The resident evaluator
that it starts is its own and is stopped before the calls without one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kopt.kernels.problem_loader import find_kernel

KERNEL = "silu_and_mul_b128xh14336"
FILES = 12
CALLERS = 10
_SPIN = "  for (volatile int spins = 0; spins >= 0;) spins = 0;\n"
"""What the kernel of a careless caller does until its time limit."""


@dataclass(frozen=True)
class Row:
    """One figure."""

    what: str
    wall_s: tuple[float, ...]
    """The measured wall time of each call in seconds, in order."""
    target_s: float | None = None

    def line(self) -> str:
        """Return it as a row of a table."""
        walls = ", ".join(f"{one:.2f}" for one in self.wall_s)
        target = "-" if self.target_s is None else f"<= {self.target_s:g}"
        return f"| {self.what} | {walls} | {target} |"


class Commands:
    """Calls of `kopt` on one kernel and device."""

    def __init__(self, kernel: str, device: str, folder: Path) -> None:
        """Write the files to call with."""
        problem, _ = find_kernel(kernel)
        self.kernel, self.device = kernel, device
        self.reference = problem.folder / "reference.cu"
        source = self.reference.read_text("utf-8")
        self.files = [_written(folder / f"c{k}.cu", _variant(source, k)) for k in range(FILES)]
        self.spinning = _written(folder / "spins.cu", _spinning(source))

    def bench(self) -> float:
        """Benchmark the reference kernel, slower or not; return the wall time in seconds."""
        return self._timed("bench", str(self.reference), codes=(0, 1))

    def check(self, path: Path | None = None, codes: Sequence[int] = (0,)) -> float:
        """Check a file at level full."""
        return self._timed("check", str(path or self.reference), "--level", "full", codes=codes)

    def step(self) -> float:
        """Begin a search with all files."""
        return self._timed("step", *map(str, self.files))

    def _timed(self, command: str, *words: str, codes: Sequence[int] = (0,)) -> float:
        called = [command, *words, "--kernel", self.kernel, "--device", self.device, "--json"]
        began = time.monotonic()
        run = kopt(*called)
        took_s = time.monotonic() - began
        if run.returncode not in codes:
            said = run.stderr[-2000:] or run.stdout[-2000:]
            raise SystemExit(f"kopt {' '.join(called)}: {run.returncode}\n{said}")
        return took_s


def kopt(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run `kopt WORDS`."""
    return subprocess.run(
        [sys.executable, "-m", "kopt", *words], capture_output=True, text=True, check=False
    )


def measured(commands: Commands) -> Iterator[Row]:
    """Yield the figures of calls that share an evaluator, which the first of them starts."""
    os.environ["KOPT_GPU_IDLE_S"] = "600"
    yield Row("first `kopt bench`, which starts it", _times(commands.bench, 1))
    yield Row("`kopt bench` from the second on", _times(commands.bench, 4), 2.0)
    yield Row(
        "first `kopt check --level full`, which builds the simulator", _times(commands.check, 1)
    )
    yield Row("`kopt check --level full` from the second on", _times(commands.check, 3), 3.0)
    yield Row(f"`kopt step` of {FILES} files", _times(commands.step, 2), 20.0)
    yield Row(f"{CALLERS} checks at once", _at_once(commands, with_spinning=False))
    print(_waits(), file=sys.stderr, flush=True)
    yield Row("… beside one whose kernel hangs", _at_once(commands, with_spinning=True))


def measured_without(commands: Commands) -> Iterator[Row]:
    """Yield the figures of calls that start workers of their own."""
    os.environ["KOPT_GPU_IDLE_S"] = "0"
    yield Row("`kopt bench` without", _times(commands.bench, 3))
    yield Row("`kopt check --level full` without", _times(commands.check, 2))


def main() -> None:
    """Measure, print each row when it is there, and stop the evaluator."""
    parser = argparse.ArgumentParser(description="What a resident evaluator gains.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--kernel", default=KERNEL)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.absolute().parent}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled once
    print("| commands | wall s | target |\n|---|---|---|", flush=True)
    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        commands = Commands(options.kernel, options.device, Path(folder))
        try:
            for row in measured(commands):
                _keep(row, rows, options.json)
            waits = _waits()
        finally:
            kopt("gpu", "stop", "--now")
        for row in measured_without(commands):
            _keep(row, rows, options.json)
    print(f"\n{waits}")


def _keep(row: Row, rows: list[Row], path: Path | None) -> None:
    """Print a row, and write it with those before it."""
    print(row.line(), flush=True)
    rows.append(row)
    if path is not None:
        path.write_text(json.dumps([asdict(one) for one in rows], indent=1), encoding="utf-8")


def _waits() -> str:
    """Return how long callers have waited for the GPU, as the evaluator says."""
    (one,) = json.loads(kopt("gpu", "status", "--json").stdout)["evaluators"]
    return (
        f"{one['turns']} turns; the GPU was held for {one['busy_share']:.0%} of the evaluator's"
        f" life; waits: median {one['wait_p50_s']:.3g} s, p95 {one['wait_p95_s']:.3g} s"
    )


def _times(call: Callable[[], float], count: int) -> tuple[float, ...]:
    return tuple(call() for _ in range(count))


def _at_once(commands: Commands, *, with_spinning: bool) -> tuple[float, ...]:
    """Return the wall times of checks that begin together, shortest first."""
    with ThreadPoolExecutor(CALLERS + 1) as threads:
        spinning = (
            threads.submit(commands.check, commands.spinning, (1,)) if with_spinning else None
        )
        checks = [threads.submit(commands.check, path) for path in commands.files[:CALLERS]]
        walls_s = tuple(sorted(check.result() for check in checks))
        if spinning is not None:
            spinning.result()
    return walls_s


def _variant(source: str, number: int) -> str:
    """Return a source that no cache takes for another, and that does the same."""
    return f"{source}\n// variant {number} of process {os.getpid()}\n"


def _spinning(source: str) -> str:
    """Return the kernel with a loop without an end at its beginning."""
    head, mark, body = source.partition('extern "C" __global__')
    start = body.index("{") + 2
    return head + mark + body[:start] + _SPIN + body[start:]


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
