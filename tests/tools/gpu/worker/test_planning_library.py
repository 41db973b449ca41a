"""A library that plans when it is bound: the inputs are there by then, in checks and in timings."""

import sys
from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.problem import Problem
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import LibrarySide
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.messages import ExecuteRequest
from kopt.tools.gpu.worker.context import WorkerContext
from kopt.tools.gpu.worker.driver import Stream
from kopt.tools.gpu.worker.execution import execute, stage
from kopt.tools.gpu.worker.launcher import LaunchDevice, PlanCache
from support.host_cuda import SM_COUNT, HostCuda
from support.host_timing import HostTimingCuda
from support.host_torch import DeviceTensor, HostTorch
from support.timing_rig import FACTS, TimingRig

BASELINE = """\
DISTRIBUTIONS = ("numpy",)


def planning(tensors, scalars, pdl):
    x, weight, out = (tensors[name].array for name in ("x", "weight", "out"))
    planned = float(x.sum(dtype="f8")), float(weight.astype("f8").sum())

    def launch():
        out[:] = 0
        out[0, :2] = planned

    return launch


def copying(tensors, scalars, pdl):
    assert tensors["scale"].array == 2.0  # what a plan of these sets is made of
    return lambda: tensors["out"].copy_(tensors["x"])
"""


def _side(entry: str, pdl: bool = False) -> LibrarySide:
    baseline = {"name": "library", "entry": entry, "layout": "row_major"}
    return LibrarySide.model_validate({"baseline": baseline, "pdl": pdl})


def _executed(cuda: HostCuda, problem: Problem, folder: Path, late: bool) -> Arrays:
    """Return the outputs of one checked execution, whose inputs are 1 for x and 2 for weight."""
    cuda.kernels = {"late_producer": lambda _: None}
    (folder / "baseline.py").write_text(BASELINE)
    (folder / "any.cubin").write_bytes(b"cubin")
    device = LaunchDevice(Stream(5), SM_COUNT)
    helpers = {"late_producer": str(folder / "any.cubin")}
    inputs: Arrays = {
        "x": np.ones((8, 64), dtype=np.float32),
        "weight": np.full(64, 0x4000, dtype=np.uint16),  # 2 in bfloat16
    }
    request = ExecuteRequest(
        problem=problem.model_copy(update={"folder": folder}),
        workload=problem.workload("b8xh64"),
        side=_side("planning"),
        inputs=write_arrays(folder, "inputs", inputs.items()),
        poison=0xFF,
        late_producer=late,
    )
    worker = WorkerContext(FACTS, device.stream, PlanCache(device), helpers)
    answer = execute(stage(request, folder, worker), folder, worker)
    return read_arrays(folder, answer.outputs, {"out": "float32"})


def test_a_check_has_brought_all_inputs_when_a_library_is_bound(
    host_cuda: HostCuda,
    compile_problem: Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", HostTorch())
    out = _executed(host_cuda, compile_problem, tmp_path, late=False)["out"]
    assert out[0, :2].tolist() == [512.0, 128.0]


def test_static_inputs_are_there_even_where_the_others_come_late(
    host_cuda: HostCuda,
    compile_problem: Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", HostTorch())
    out = _executed(host_cuda, compile_problem, tmp_path, late=True)["out"]
    assert np.isnan(out[0, 0])
    assert out[0, 1] == 128.0


def test_the_sets_of_a_timing_are_filled_when_a_library_is_bound(
    host_timing: HostTimingCuda,
    compile_problem: Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", HostTorch(DeviceTensor))
    rig = TimingRig(host_timing, compile_problem, tmp_path)
    (tmp_path / "baseline.py").write_text(BASELINE)
    rig.problem = rig.problem.model_copy(update={"folder": tmp_path})
    assert rig.session(_side("copying")).facts.sets > 1
