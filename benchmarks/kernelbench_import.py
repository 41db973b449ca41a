"""Import KernelBench's tasks: which are lowered, agree with the oracle, or are refused by name.

Each task becomes a problem below --output, one that is there already stays; its kernels run on the
CPU without the simulator's checks (tests/support/plain_cuda.py), at the small shape, and its
outputs go through the gates of `kopt check`.

    KERNELBENCH=FOLDER PYTHONPATH=tests .venv/bin/python benchmarks/kernelbench_import.py
        [--level 1] [--level 2] [--only TEXT] [--output FOLDER]

FOLDER is a checkout of KernelBench, or its folder that holds level1, level2, level3.
"""

import argparse
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from kopt.config.errors import KoptError
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.case_inputs import draw_inputs
from kopt.kernels.oracle import expected_at, load_oracle
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judge import judge
from kopt.tools.check.reference import make_reference
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.stage import ImportRequest, import_function
from support.plain_cuda import PlainCase, PlainLibrary

_POISON = 0xA5
_SEED = 1

Outcome = Literal["agrees", "differs", "refused"]


@dataclass(frozen=True)
class Trial:
    """What became of a task."""

    task: str
    outcome: Outcome
    launches: int
    note: str = ""


def main() -> None:
    """Print a line for each task, then how many of each outcome a level has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--only", default="", help="tasks whose file name has this text")
    parser.add_argument("--output", type=Path, default=Path("build/kernelbench"))
    options = parser.parse_args()
    settings = settings_from_environment()
    counts: dict[int, Counter[Outcome]] = {}
    for level, path in _tasks(options.level or [1, 2, 3], options.only):
        start = time.monotonic()
        trial = _tried(level, path, options.output, settings)
        counts.setdefault(level, Counter())[trial.outcome] += 1
        seconds = time.monotonic() - start
        print(
            f"{trial.outcome:8} {trial.launches:4} launches {seconds:5.0f} s  {trial.task}"
            f"  {trial.note}".rstrip(),
            flush=True,
        )
    for level, counted in sorted(counts.items()):
        shown = ", ".join(f"{counted[one]} {one}" for one in ("agrees", "differs", "refused"))
        print(f"level {level}: {counted.total()} tasks, {shown}")


def _tasks(levels: list[int], only: str) -> Iterator[tuple[int, Path]]:
    given = os.environ.get("KERNELBENCH")
    if given is None:
        raise SystemExit("set KERNELBENCH to a checkout of KernelBench")
    root = Path(given)
    root = root / "KernelBench" if (root / "KernelBench").is_dir() else root
    for level in levels:
        files = (root / f"level{level}").glob("*.py")
        for path in sorted(files, key=lambda file: int(file.stem.split("_")[0])):
            if only in path.name:
                yield level, path


def _tried(level: int, path: Path, output: Path, settings: Settings) -> Trial:
    name = f"l{level}_{re.sub(r'[^a-z0-9]+', '_', path.stem.lower()).strip('_')}"[:60]
    folder = output / name
    try:
        if not (folder / "problem.yaml").is_file():
            export = ExportRequest(source=str(path.absolute()), import_path=(str(path.parent),))
            request = ImportRequest(export, output, name)
            result = import_function(request, settings)
            if result.launches is None:
                return Trial(name, "refused", 0, "; ".join(result.warnings)[:200])
        problem = load_problem(folder.absolute())
        source = (folder / "reference.cu").read_text("utf-8")
        finding = _difference(problem, source)
    except (KoptError, OSError) as error:
        return Trial(name, "refused", 0, str(error).replace("\n", " ")[:200])
    launches = source.count("\n  - {kernel:")
    return Trial(name, "differs" if finding else "agrees", launches, finding)


def _difference(problem: Problem, source: str) -> str:
    """Return what the gates find at the first workload; "" for nothing."""
    workload, oracle = problem.workloads[0], load_oracle(problem)
    inputs = draw_inputs(problem, oracle, workload, np.random.default_rng([_SEED, 0]), "normal")
    scalars = {scalar.name: scalar.value for scalar in problem.scalars}
    expected = expected_at(oracle, inputs, scalars, workload)
    references = {name: make_reference(problem, name, entry) for name, entry in expected.items()}
    with TemporaryDirectory() as work:
        library = PlainLibrary([PlainCase(problem, workload, source, {})], Path(work))
        outputs = library.run(0, inputs)
    finding = judge(CaseData(inputs, references), outputs, _POISON).finding
    return "" if finding is None else f"{finding.tensor} by the gate {finding.gate}: {finding.note}"


if __name__ == "__main__":
    main()
