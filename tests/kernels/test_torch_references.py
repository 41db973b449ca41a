"""PyTorch references, of exports and of definitions, against the oracles by a kernel's gates."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.tools.check.case_data import CaseKey, make_case_data
from kopt.tools.check.judge import judge

pytestmark = pytest.mark.gpu  # torch comes with the `gpu` extra; no device is used

REFERENCES = [
    pytest.param(problem, path, id=f"{problem.name}-{path.stem}")
    for problem in load_problems().values()
    for path in sorted(problem.folder.glob("torch_*.py"))
]


def reference_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run


def to_torch(array: npt.NDArray[Any]) -> Any:
    torch: Any = importlib.import_module("torch")
    flat = np.array(array).reshape(-1).view(np.uint8)
    dtype = getattr(torch, array.dtype.name)
    return torch.from_numpy(flat).view(dtype).reshape(array.shape)


def to_numpy(tensor: Any, dtype: str) -> npt.NDArray[Any]:
    torch: Any = importlib.import_module("torch")
    flat: npt.NDArray[np.uint8] = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return flat.view(numpy_dtype(dtype))


@pytest.mark.parametrize("regime", ["normal", "mixed"])
@pytest.mark.parametrize(("problem", "path"), REFERENCES)
def test_a_reference_passes_the_gates_of_its_problem(
    problem: Problem, path: Path, regime: str
) -> None:
    data = make_case_data(CaseKey(problem, problem.workloads[0], 3, regime))
    inputs = [to_torch(data.inputs[t.name]) for t in problem.tensors if t.role != "out"]
    given = reference_of(path)(*inputs)
    written = [tensor for tensor in problem.tensors if tensor.role != "in"]
    results: list[Any] = [given] if hasattr(given, "dtype") else list(given)
    arrays = {
        tensor.name: to_numpy(result, tensor.dtype)
        for tensor, result in zip(written, results, strict=True)
    }
    finding = judge(data, arrays, poison=0).finding
    assert finding is None, f"{finding.tensor}: {finding.note}"
