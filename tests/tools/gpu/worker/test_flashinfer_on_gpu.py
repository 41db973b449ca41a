"""Every path of FlashInfer on a real GPU, judged as a candidate is: gates, poison, capture.

The first run builds FlashInfer's modules, minutes in all. Where FLASHINFER_WORKSPACE_BASE is set
they are kept there, else they go with the test session.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge
from support import library_probe
from support.library_probe import CAPTURED, POISONS

pytestmark = pytest.mark.gpu

BUILD_LIMIT_S = 1200.0
PATHS = [
    (problem.name, baseline.name, pdl)
    for problem in load_problems().values()
    for baseline in problem.baselines
    for pdl in baseline.pdl
]


@dataclass(frozen=True)
class Probed:
    """What the probe of one problem found."""

    problem: Problem
    workload: Workload
    data: CaseData
    report: dict[str, Any]
    outputs: dict[str, npt.NDArray[Any]]

    def facts(self, baseline: str, pdl: bool) -> dict[str, Any]:
        """Return what is said of a path; skipped where it is not meant for this device."""
        devices = next(b.devices for b in self.problem.baselines if b.name == baseline)
        capability = ".".join(map(str, self.report["compute_capability"]))
        if capability not in devices:  # problem.yaml offers it for other GPUs alone
            pytest.skip(f"not meant for compute capability {capability}")
        facts: dict[str, Any] = self.report["paths"][f"{baseline}/{pdl}"]
        assert "fault" not in facts, facts
        return facts

    def bits(self, baseline: str, pdl: bool, run: str) -> dict[str, npt.NDArray[Any]]:
        """Return the outputs of one run as unsigned integers."""
        prefix = f"{baseline}/{pdl}/{run}/"
        return {
            name.removeprefix(prefix): bits
            for name, bits in self.outputs.items()
            if name.startswith(prefix)
        }

    def arrays(self, baseline: str, pdl: bool, run: str) -> dict[str, npt.NDArray[Any]]:
        """Return the outputs of one run in the dtypes of the problem."""
        return {
            name: bits.view(numpy_dtype(self.problem.tensor(name).dtype))
            for name, bits in self.bits(baseline, pdl, run).items()
        }


@pytest.fixture(scope="session")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Probed]:
    """Probe a problem at its smallest workload, each problem once."""
    if find_spec("flashinfer") is None:
        pytest.skip("FlashInfer is not installed: pip install 'kopt-mcp[gpu]'")
    kept = os.environ.get("FLASHINFER_WORKSPACE_BASE")
    workspace = Path(kept) if kept else tmp_path_factory.mktemp("flashinfer")

    @cache
    def run(problem_name: str) -> Probed:
        problem = load_problems()[problem_name]
        workload = min(problem.workloads, key=lambda workload: prod(workload.axes.values()))
        data = make_case_data(CaseKey(problem, workload, seed=1, regime="normal"))
        folder = tmp_path_factory.mktemp(problem_name)
        inputs = {name: array.view(f"u{array.itemsize}") for name, array in data.inputs.items()}
        np.savez(folder / "inputs.npz", allow_pickle=False, **inputs)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "FLASHINFER_WORKSPACE_BASE": str(workspace),
        }
        child = subprocess.run(
            [sys.executable, library_probe.__file__, problem_name, workload.name, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_LIMIT_S,
            check=False,
        )
        assert child.returncode == 0, child.stderr[-2000:]
        with np.load(folder / "outputs.npz") as file:
            outputs = {name: file[name] for name in file.files}
        report = json.loads(child.stdout.splitlines()[-1])
        return Probed(problem, workload, data, report, outputs)

    return run


@pytest.mark.parametrize(("problem", "baseline", "pdl"), PATHS)
def test_a_path_passes_the_gates_on_both_poisons(
    probed: Callable[[str], Probed], problem: str, baseline: str, pdl: bool
) -> None:
    found = probed(problem)
    found.facts(baseline, pdl)
    for poison in POISONS:
        judgement = judge(found.data, found.arrays(baseline, pdl, str(poison)), poison)
        assert judgement.finding is None


@pytest.mark.parametrize(("problem", "baseline", "pdl"), PATHS)
def test_a_captured_call_gives_the_same_bits_and_allocates_nothing(
    probed: Callable[[str], Probed], problem: str, baseline: str, pdl: bool
) -> None:
    found = probed(problem)
    facts = found.facts(baseline, pdl)
    captured = found.bits(baseline, pdl, CAPTURED)
    eager = found.bits(baseline, pdl, str(POISONS[-1]))
    assert captured.keys() == eager.keys() != set()
    assert all((captured[name] == eager[name]).all() for name in eager)
    assert facts["allocations"] == 0
    assert set(facts["nodes"]) == {"KERNEL"}  # and one, but where parts of a sum are merged


@pytest.mark.parametrize(("problem", "baseline", "pdl"), [p for p in PATHS if "fp4" in p[0]])
def test_an_nvfp4_path_on_hopper_is_refused_by_its_outputs_or_its_own_words(
    probed: Callable[[str], Probed], problem: str, baseline: str, pdl: bool
) -> None:
    found = probed(problem)
    if found.report["compute_capability"] != [9, 0]:
        pytest.skip("FlashInfer's NVFP4 kernels are empty on compute capability 9.0 only")
    facts = found.report["paths"][f"{baseline}/{pdl}"]
    if "fault" in facts:
        assert facts["fault"]["during"] == "library"
        return
    for poison in POISONS:
        bits = found.bits(baseline, pdl, str(poison))
        assert all((bits[name] == poison).all() for name in ("out", "block_scale"))
        assert judge(found.data, found.arrays(baseline, pdl, str(poison)), poison).finding
