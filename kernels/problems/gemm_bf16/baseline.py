"""Libraries' x @ weight^T into the given output: torch's cuBLAS, and three paths of FlashInfer.

All sum in fp32, or are refused by the check: torch's flag that lets cuBLAS add parts of a sum in
bfloat16 is off here, as the flag for TF32 is (which bfloat16 operands do not heed). cuBLASLt as
FlashInfer calls it gets no such order: an algorithm that it chooses so does not pass the check.

FlashInfer's autotuner runs on the first call of a shape, before anything is timed: it times each
algorithm that cuBLASLt offers (100 at most), or each plan of cuDNN, with a cold L2.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("torch", "flashinfer-python")
_tuned: set[tuple[str, int, int, int]] = set()
"""Backends and sizes M, N, K that the autotuner has seen in this process."""

Tensors = Mapping[str, Any]
Scalars = Mapping[str, float | int]


def torch_linear(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind what torch.nn.functional.linear runs without a bias; cuBLAS chooses by its heuristic."""
    del scalars
    _refuse(pdl)
    torch = import_module("torch")
    x, columns, out = tensors["x"], tensors["weight"].t(), tensors["out"]

    def run() -> object:
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        return torch.mm(x, columns, out=out)

    return run


def cublaslt(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind cuBLASLt with the fastest of its algorithms."""
    del scalars
    _refuse(pdl)
    return _of_flashinfer(tensors, "cublaslt", pdl=False)


def cudnn(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind cuDNN with the fastest of its plans."""
    del scalars
    _refuse(pdl)
    return _of_flashinfer(tensors, "cudnn", pdl=False)


def tinygemm(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind FlashInfer's own kernel for few rows; N must be a multiple of 16."""
    del scalars
    return _of_flashinfer(tensors, "tinygemm", pdl)


def _refuse(pdl: bool) -> None:
    if pdl:
        raise NotImplementedError("this library has no programmatic dependent launch here")


def _of_flashinfer(tensors: Tensors, backend: str, pdl: bool) -> Callable[[], object]:
    product = import_module("flashinfer.gemm").mm_bf16
    autotune = import_module("flashinfer.autotuner").autotune
    x, columns, out = tensors["x"], tensors["weight"].t(), tensors["out"]
    rows, depth = x.shape
    sizes = backend, rows, columns.shape[1], depth

    def run() -> object:
        with autotune(sizes not in _tuned, tuning_buckets=(rows,)):
            product(x, columns, pdl=pdl, out=out, backend=backend)
        _tuned.add(sizes)
        return None

    return run
