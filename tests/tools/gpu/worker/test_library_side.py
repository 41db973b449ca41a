"""A function of baseline.py over memory that is not torch's, and what its failures become."""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.problem_loader import load_problem
from kopt.tools.devices.timer import LibrarySide
from kopt.tools.gpu.messages import Fault
from kopt.tools.gpu.worker.failure import ExecutionFailure
from kopt.tools.gpu.worker.library_side import BoundLibrary, bind_library
from support.host_torch import HostTorch
from support.tiny_problem import PROBLEM_YAML, write_tiny_problem

STREAM = 77
BASELINE = """\
import sys

DISTRIBUTIONS = ("numpy",)


def scale(tensors, scalars, pdl):
    torch = sys.modules["torch"]
    x, weight, out = (tensors[name].array for name in ("x", "weight", "out"))
    bound_on, seen = torch.current_stream, [str(weight.dtype), weight.shape, pdl]

    def launch():
        out[:] = x * scalars["scale"]
        out[0, :2] = bound_on, torch.current_stream
        out[0, 2] = seen == ["bfloat16", (64,), True]
        torch.allocated += 3

    return launch


def returning(tensors, scalars, pdl):
    torch = sys.modules["torch"]

    def launch():
        result = torch.empty_like(tensors["out"])
        result.copy_(tensors["x"])
        return {"out": result}

    return launch


def absent(tensors, scalars, pdl):
    import no_such_library


def unbuilt(tensors, scalars, pdl):
    said = "Ninja build failed.", "[1/2] nvcc x.cu", "\\x1b[91mx.cu(3): error:\\x1b[0m no", ""
    raise RuntimeError("\\n".join(said))


def failing(tensors, scalars, pdl):
    def launch():
        raise ValueError("misaligned tensor\\nargument 0")
    return launch
"""


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> HostTorch:
    stand_in = HostTorch()
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    return stand_in


class Memory:
    """Host memory of one call of the tiny problem on B = 8, H = 64; must outlive what is bound."""

    def __init__(self) -> None:
        self.x: npt.NDArray[np.float32] = np.arange(512, dtype=np.float32)
        self.weight = np.zeros(64, dtype=np.uint16)
        self.out: npt.NDArray[np.float32] = np.full(512, np.nan, dtype=np.float32)

    def bind(self, folder: Path, entry: str, text: str = BASELINE, more: str = "") -> BoundLibrary:
        written = write_tiny_problem(folder)
        (written / "baseline.py").write_text(text)
        baselines = f"baselines: [{{name: library, entry: {entry}, layout: row_major}}]\n"
        (written / "problem.yaml").write_text(PROBLEM_YAML + baselines + more)
        problem = load_problem(written)
        addresses = {name: vars(self)[name].ctypes.data for name in ("x", "weight", "out")}
        side = LibrarySide(baseline=problem.baselines[0], pdl=True)
        return bind_library(side, problem, problem.workload("b8xh64"), addresses, STREAM)


def fault_of(memory: Memory, folder: Path, entry: str, text: str = BASELINE) -> Fault:
    with pytest.raises(ExecutionFailure) as caught:
        memory.bind(folder, entry, text).launch()
    return caught.value.fault


def test_a_launch_computes_in_the_given_memory(tmp_path: Path, torch: HostTorch) -> None:
    memory = Memory()
    bound = memory.bind(tmp_path, "scale")
    assert np.isnan(memory.out).all()
    bound.launch()
    assert (memory.out[64:] == 2 * memory.x[64:]).all()
    assert bound.library.startswith("numpy ")


@pytest.mark.parametrize(
    ("precision", "matrices", "convolutions"),
    [("", 0, 0), ("ieee", 0, 0), ("tf32", 1, 1), ("torch", 0, 1)],
)
def test_products_of_a_library_have_the_precision_of_the_problem(
    tmp_path: Path, torch: HostTorch, precision: str, matrices: int, convolutions: int
) -> None:
    memory = Memory()
    more = f"precision: {precision}\n" if precision else ""
    bound = memory.bind(tmp_path, "scale", more=more)
    for _ in range(2):  # when it is bound, and at each launch
        assert torch.backends.cuda.matmul.allow_tf32 == bool(matrices)
        assert torch.backends.cudnn.allow_tf32 == bool(convolutions)
        torch.backends.cuda.matmul.allow_tf32 = not matrices
        torch.backends.cudnn.allow_tf32 = not convolutions
        bound.launch()


def test_binding_and_launching_happen_on_the_given_stream(tmp_path: Path, torch: HostTorch) -> None:
    memory = Memory()
    memory.bind(tmp_path, "scale").launch()
    assert memory.out[:2].tolist() == [STREAM, STREAM]
    assert torch.current_stream == 0


def test_tensors_have_the_shape_and_dtype_of_the_problem(tmp_path: Path, torch: HostTorch) -> None:
    memory = Memory()
    memory.bind(tmp_path, "scale").launch()
    assert memory.out[2] == 1


def test_the_allocations_of_one_launch_are_counted(tmp_path: Path, torch: HostTorch) -> None:
    memory = Memory()
    bound = memory.bind(tmp_path, "scale")
    bound.launch()
    assert bound.count_allocations() == 3


def test_results_of_a_function_in_torchs_style_reach_the_buffers_when_they_are_delivered(
    tmp_path: Path, torch: HostTorch
) -> None:
    memory = Memory()
    bound = memory.bind(tmp_path, "returning")
    bound.launch()
    assert np.isnan(memory.out).all()
    bound.deliver()
    assert (memory.out == memory.x).all()
    assert torch.allocated
    assert bound.count_allocations() == 0


@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [
        ("absent", "ModuleNotFoundError", "No module named 'no_such_library'"),
        ("unbuilt", "RuntimeError", "Ninja build failed.; x.cu(3): error: no"),
        ("failing", "ValueError", "misaligned tensor"),
    ],
)
def test_what_a_library_raises_is_a_fault_in_its_own_words(
    tmp_path: Path, torch: HostTorch, entry: str, code: str, message: str
) -> None:
    memory = Memory()
    fault = fault_of(memory, tmp_path, entry)
    assert (fault.during, fault.code, fault.message) == ("library", code, message)


def test_only_a_failed_launch_casts_doubt_on_the_context(tmp_path: Path, torch: HostTorch) -> None:
    memory = Memory()
    (tmp_path / "other").mkdir()
    assert fault_of(memory, tmp_path, "failing").sticky
    assert not fault_of(memory, tmp_path / "other", "unbuilt").sticky


def test_a_mistake_in_the_users_baseline_is_a_fault_with_its_file(
    tmp_path: Path, torch: HostTorch
) -> None:
    memory = Memory()
    fault = fault_of(memory, tmp_path, "scale", "raise OSError('mine')\n")
    assert fault.code == "baseline.py"
    assert fault.message.endswith("scale_rows/baseline.py fails to load: OSError: mine")


def test_without_torch_the_fault_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    memory = Memory()
    fault = fault_of(memory, tmp_path, "scale")
    assert fault.code == "ImportError"
    assert "pip install 'kopt-mcp[gpu]'" in fault.message
