"""Print what an evaluation costs, kopt's and KernelBench's, of the same kernels on the same GPU.

    KERNELBENCH=FOLDER .venv/bin/python benchmarks/beside_kernelbench.py [--device cuda:0]
        [--count 5] [--json FILE]

SwiGLU of 128 rows, 14336 columns, bfloat16, becomes a problem by `kopt new`; its first kernel, made
different by a comment each time, is evaluated as a candidate that nobody has seen: by KernelBench's
own evaluator in a process of its own (five comparisons, a hundred timed calls, as its
scripts/eval_from_generations.py), and by `kopt check --level full` and `kopt bench`, first each
alone and then beside a resident evaluator. FOLDER is a checkout of KernelBench, which is not part
of kopt. Figures are wall times of whole commands, Python's start and compilation included. One's
resident evaluators are stopped at the end.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kernelbench_rows import checkout_of

NAME = "swiglu"
MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        return nn.functional.silu(gate) * up


def get_inputs():
    return [torch.randn(128, 28672, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
"""
WITHOUT_CLIENTS = """\
import sys
from types import ModuleType

# Its modules load these; no evaluation calls them.
for client in ("litellm", "openai", "dotenv", "requests", "tqdm"):
    try:
        __import__(client)
    except ImportError:
        sys.modules[client] = module = ModuleType(client)
        module.completion = module.OpenAI = module.load_dotenv = module.tqdm = print
"""
"""The beginning of a program that loads KernelBench's modules: of no other packages of theirs."""
_EVALUATE = f"""\
{WITHOUT_CLIENTS}
import torch
from kernelbench.eval import eval_kernel_against_ref

model, solution, folder, device = sys.argv[1:]
result = eval_kernel_against_ref(
    open(model).read(),
    open(solution).read(),
    num_correct_trials=5,
    num_perf_trials=100,
    measure_performance=True,
    build_dir=folder,
    device=torch.device(device),
    precision=torch.bfloat16,
)
if result is None or not result.correctness:
    sys.exit("KernelBench: " + str(result))
"""
"""Run by a Python of its own: its evaluator keeps a context, and an extension stays loaded."""


class Row(NamedTuple):
    """One way to evaluate."""

    what: str
    wall_s: tuple[float, ...]
    """The measured wall time of each candidate in seconds, in order."""

    def line(self) -> str:
        """Return it as a row of a table."""
        walls = ", ".join(f"{one:.1f}" for one in self.wall_s)
        return f"| {self.what} | {median(self.wall_s):.1f} | {walls} |"


class Candidates:
    """The problem, and kernels that no cache takes for one another."""

    def __init__(self, folder: Path, device: str, arch: str) -> None:
        """Import the problem into a folder.

        Raises:
            SystemExit: `kopt new` failed.
        """
        self._device, self._arch = device, arch
        self._model = folder / f"{NAME}.py"
        self._model.write_text(MODEL, encoding="utf-8")
        kopt("new", str(self._model), "--to", str(folder))
        self._problem = folder / NAME
        # The shape of MODEL: a check takes the small one, as for every imported problem.
        self._official = ("--kernel", f"{NAME}_official", "--problems", str(folder))
        self._reference = (self._problem / "reference.cu").read_text("utf-8")
        self._made = 0

    def by_kopt(self) -> float:
        """Check and benchmark another kernel; return the wall time of both, in seconds.

        Raises:
            SystemExit: It failed.
        """
        path = str(self._another())
        checked_s = kopt("check", path, "--level", "full", "--device", self._device)
        words = ("bench", path, *self._official, "--device", self._device)
        return checked_s + kopt(*words, codes=(0, 1))  # it may be slower than torch

    def by_kernelbench(self, checkout: Path) -> float:
        """Evaluate another kernel with a checkout of KernelBench; return the wall time in seconds.

        Raises:
            SystemExit: It failed.
        """
        path = self._another()
        to = path.with_suffix("")
        kopt("export", str(path), "--as", "kernelbench", "--arch", self._arch, "--to", str(to))
        words = [sys.executable, "-c", _EVALUATE, str(self._model), str(to / "model_new.py")]
        paths = os.pathsep.join(filter(None, (str(checkout / "src"), os.getenv("PYTHONPATH"))))
        return timed([*words, str(to / "build"), self._device], {"PYTHONPATH": paths})

    def _another(self) -> Path:
        self._made += 1
        path = self._problem / f"c{self._made}.cu"
        path.write_text(f"{self._reference}\n// {os.getpid()}-{self._made}\n", encoding="utf-8")
        return path


def timed(
    words: Sequence[str], variables: Mapping[str, str] | None = None, codes: Sequence[int] = (0,)
) -> float:
    """Run a command and return its wall time in seconds.

    Raises:
        SystemExit: It ended with none of the exit codes.
    """
    began = time.monotonic()
    environment = {**os.environ, **(variables or {})}
    run = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    took_s = time.monotonic() - began
    if run.returncode not in codes:
        raise SystemExit(f"{' '.join(words[:4])}: {run.returncode}\n{run.stderr[-2000:]}")
    return took_s


def kopt(*words: str, codes: Sequence[int] = (0,)) -> float:
    """Run `kopt WORDS` and return its wall time in seconds.

    Raises:
        SystemExit: It ended with none of the exit codes.
    """
    return timed([sys.executable, "-m", "kopt", *words], codes=codes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What an evaluation costs here and there.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--arch", default="sm_90a", help="of that device")
    parser.add_argument("--count", type=int, default=5, help="candidates for each way")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        checkout = checkout_of(os.environ.get("KERNELBENCH")).parent
    except ValueError as error:
        parser.error(str(error))
    os.environ["KOPT_GPU_IDLE_S"] = "0"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled once
    with TemporaryDirectory() as folder:
        candidates = Candidates(Path(folder), options.device, options.arch)
        candidates.by_kopt()  # what is built once is built
        try:
            rows = _measured(candidates, checkout, options.count)
        finally:
            kopt("gpu", "stop", "--now")
    print("| evaluation | median s | each |\n|---|---|---|")
    for row in rows:
        print(row.line())
    if options.json:
        found = [row._asdict() for row in rows]
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _measured(candidates: Candidates, checkout: Path, count: int) -> list[Row]:
    """Take turns, so that neither has the machine while it is quieter."""
    others_s, ours_s, resident_s = list[float](), list[float](), list[float]()
    for _ in range(count):
        others_s.append(_said("KernelBench", candidates.by_kernelbench(checkout)))
        ours_s.append(_said("kopt", candidates.by_kopt()))
    os.environ["KOPT_GPU_IDLE_S"] = "600"
    _said("kopt, which starts an evaluator", candidates.by_kopt())
    for _ in range(count):
        resident_s.append(_said("kopt beside it", candidates.by_kopt()))
    return [
        Row("KernelBench", tuple(others_s)),
        Row("`kopt check --level full` and `kopt bench`", tuple(ours_s)),
        Row("the same with a resident evaluator", tuple(resident_s)),
    ]


def _said(what: str, took_s: float) -> float:
    print(f"{what}: {took_s:.1f} s", file=sys.stderr, flush=True)
    return took_s


if __name__ == "__main__":
    main()
