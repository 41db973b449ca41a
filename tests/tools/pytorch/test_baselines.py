"""Baselines of imported functions: the user's module on the tensors of a case."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from kopt.tools.pytorch.library_side import bound_call
from kopt.tools.pytorch.torch_library import load_torch
from support.imported_modules import case_tensors, import_text
from support.torch_sources import HEAD, SOURCES

pytestmark = pytest.mark.slow  # torch.export: 10 s for the first of a process, 1 to 3 s for others


def test_the_baseline_is_the_users_module_with_the_weights_of_the_case(
    tmp_path: Path,
) -> None:
    result = import_text(tmp_path, SOURCES["norm_gelu"], mode="eval")
    torch = load_torch()
    tensors = case_tensors(result, 0)
    (out,) = bound_call(Path(result.folder), tensors)().values()
    x, weight, bias = (tensors[name] for name in ("x", "norm_weight", "norm_bias"))
    normed = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)
    assert torch.equal(out, torch.nn.functional.gelu(normed))


def test_many_buffer_sets_are_compiled_once_for_each_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = import_text(tmp_path, SOURCES["norm_gelu"], mode="eval")
    torch = load_torch()
    counter = importlib.import_module("torch._dynamo.testing").CompileCounter()
    compiled = torch.compile

    def counted(function: Any, mode: str) -> Any:
        del mode
        return compiled(function, backend=counter)

    monkeypatch.setattr(torch, "compile", counted)
    for _ in range(9):  # torch.compile meets a function eight times at most
        for place in (0, 1):
            tensors = case_tensors(result, place)
            (out,) = bound_call(Path(result.folder), tensors, mode="default")().values()
            assert out.shape == tensors["out"].shape
    assert counter.frame_count == 2


def test_the_baseline_of_a_norm_that_trains_writes_none_of_the_cases_tensors(
    tmp_path: Path,
) -> None:
    model = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x):
        return self.norm(self.conv(x))

def get_inputs():
    return [torch.rand(5, 3, 8, 8)]
"""
    result = import_text(tmp_path, HEAD + model)
    torch, tensors = load_torch(), case_tensors(result, 0)
    before = {name: one.clone() for name, one in tensors.items()}
    run = bound_call(Path(result.folder), tensors)
    (first,), (second,) = run().values(), run().values()
    assert torch.equal(first, second)
    assert {name for name in before if "running" in name} == {
        "norm_running_mean",
        "norm_running_var",
    }
    assert all(torch.equal(one, before[name]) for name, one in tensors.items() if name != "out")
