"""The Python packages of the torch and TVM-FFI forms, imported with stand-ins for both libraries.

What their C++ does is tested on a GPU (tests/server/test_export_on_gpu.py); here, what they build,
for which GPU, and what they hand to the operator.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kopt.tools.export.exported_kernel import ExportedKernel, Form
from kopt.tools.export.stage import export
from support.exports import exported_reference, exported_sample


@dataclass
class Tensor:
    """A tensor that knows its shape and makes others."""

    shape: tuple[int, ...]
    made: str = "given"
    dtype: object = None

    def new_empty(self, shape: tuple[int, ...], dtype: object) -> "Tensor":
        return Tensor(shape, "empty", dtype)

    def new_zeros(self, shape: tuple[int, ...], dtype: object) -> "Tensor":
        return Tensor(shape, "zeros", dtype)


@dataclass
class Library:
    """What the stand-ins were asked."""

    builds: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    calls: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    archs: list[str | None] = field(default_factory=list[str | None])

    def load(self, **asked: Any) -> "Operators":
        self.builds.append(asked)
        self.archs.append(os.environ.get("TVM_FFI_CUDA_ARCH_LIST"))
        return Operators(self.calls)


class Operators:
    """A namespace in which every name is an operator that keeps its arguments."""

    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., None]:
        def operator(*arguments: Any) -> None:
            self._calls.append((name, *arguments))

        return operator


def unchanged(_: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Stand for a decorator that only registers."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        return function

    return decorate


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """Stand in for torch and tvm_ffi."""
    made = Library()
    torch, utils, tvm_ffi = (ModuleType(name) for name in ("torch", "torch.utils", "tvm_ffi"))
    extension, tvm_cpp = ModuleType("torch.utils.cpp_extension"), ModuleType("tvm_ffi.cpp")
    vars(extension)["load"] = vars(tvm_cpp)["load"] = made.load
    vars(utils)["cpp_extension"] = extension
    vars(tvm_ffi)["cpp"] = tvm_cpp
    vars(torch).update(
        utils=utils,
        ops=SimpleNamespace(kopt=Operators(made.calls)),
        library=SimpleNamespace(register_fake=unchanged),
        bfloat16="bf16",
        float8_e4m3fn="e4m3",
        uint8="u8",
        float32="f32",
    )
    for module in (torch, utils, extension, tvm_ffi, tvm_cpp):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


def imported(exported: ExportedKernel, form: Form, folder: Path) -> Any:
    """Export `exported`, import its package and return its function."""
    export(exported, form, folder)
    place = folder / exported.name / "__init__.py"
    spec = importlib.util.spec_from_file_location(f"exported_{exported.name}", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, exported.name)


def test_torch_outputs_are_made_in_the_shape_that_the_inputs_ask_for(
    library: Library, tmp_path: Path
) -> None:
    function = imported(exported_reference("nvfp4_quantize_m128xk14336"), "torch", tmp_path / "out")
    x, scale = Tensor((40, 288)), Tensor(())
    codes, scales = function(x, scale)
    assert (codes.shape, codes.made, codes.dtype) == ((40, 144), "empty", "u8")
    # One tile of rows, five of blocks; its padding is never written.
    assert (scales.shape, scales.made, scales.dtype) == ((5 * 512,), "zeros", "e4m3")
    assert library.calls == [("nvfp4_quantize", x, scale, codes, scales)]


def test_given_outputs_are_taken_and_scalars_passed_on(library: Library, tmp_path: Path) -> None:
    exported = exported_reference("fused_add_rmsnorm_quant_b8xh8192")
    function = imported(exported, "torch", tmp_path / "out")
    tensors = [Tensor((8, 8192)), Tensor((8, 8192)), Tensor((8192,)), Tensor(())]
    out = Tensor((8, 8192))
    assert function(*tensors, out=out, eps=0.5) is out
    assert library.calls == [("fused_add_rmsnorm_quant", out, *tensors, 0.5)]


def test_what_is_updated_in_place_is_returned_where_nothing_else_is_made(
    library: Library, tmp_path: Path
) -> None:
    function = imported(exported_reference("fused_add_rmsnorm_b8xh4096"), "torch", tmp_path / "out")
    tensors = Tensor((8, 4096)), Tensor((8, 4096)), Tensor((4096,))
    assert function(*tensors) == tensors[:2]


@pytest.mark.parametrize("form", ["torch", "tvm-ffi"])
def test_every_source_is_built_for_the_gpu_of_the_export(
    library: Library, tmp_path: Path, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVM_FFI_CUDA_ARCH_LIST", "8.0")
    exported = exported_sample("good_variants_by_shape")
    imported(exported, form, tmp_path / "out")
    (build,) = library.builds
    sources = {Path(path) for path in build["sources" if form == "torch" else "cuda_files"]}
    folder = tmp_path / "out" / exported.name / "csrc"
    assert sources == {path for path in folder.iterdir() if path.suffix in (".cu", ".cpp")}
    assert {"-O3", "--use_fast_math"} <= set(build["extra_cuda_cflags"])
    if form == "torch":
        assert "-gencode=arch=compute_90a,code=sm_90a" in build["extra_cuda_cflags"]
    else:
        assert library.archs == ["9.0a"]
    assert os.environ["TVM_FFI_CUDA_ARCH_LIST"] == "8.0"


def test_the_schema_marks_what_is_written_and_nothing_else(tmp_path: Path) -> None:
    exported = exported_sample("good_pdl_wait")
    export(exported, "torch", tmp_path / "out")
    binding = tmp_path / "out" / exported.name / "csrc" / "torch_binding.cpp"
    schema = "".join(re.findall(r'^      "(.*)"', binding.read_text(), re.MULTILINE))
    marks = {name: bool(m) for m, name in re.findall(r"Tensor(\(.!\))? (\w+)", schema)}
    assert marks == {tensor.name: tensor.role != "in" for tensor in exported.problem.tensors}


def test_a_table_may_have_more_rows_than_there_are_tokens(tmp_path: Path) -> None:
    exported = exported_sample("good_rope_vectorized")
    export(exported, "tvm-ffi", tmp_path / "out")
    binding = tmp_path / "out" / exported.name / "csrc" / "tvm_ffi_binding.cu"
    tables = re.findall(r"require_table\((\w+), \"", binding.read_text())
    assert tables == ["cos_sin_cache"]
