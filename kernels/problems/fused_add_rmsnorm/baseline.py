"""FlashInfer's fused_add_rmsnorm: its two norm implementations, each chosen by name.

`flashinfer.norm.fused_add_rmsnorm` takes the CuTe DSL kernel where nvidia-cutlass-dsl is installed
and the C++ kernel elsewhere, or as FLASHINFER_USE_CUDA_NORM says. Both work in place.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "nvidia-cutlass-dsl")


def fused_add_rmsnorm_cute(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the CuTe DSL kernel; it is compiled on the first call."""
    run = import_module("flashinfer.norm.kernels").fused_add_rmsnorm_cute
    arguments = (tensors["input"], tensors["residual"], tensors["weight"], scalars["eps"])
    return lambda: run(*arguments, enable_pdl=pdl)


def fused_add_rmsnorm_cpp(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the C++ kernel; its module is built here."""
    run = import_module("flashinfer.norm").get_norm_module().fused_add_rmsnorm
    arguments = (tensors["input"], tensors["residual"], tensors["weight"], scalars["eps"], pdl)
    return lambda: run(*arguments)
