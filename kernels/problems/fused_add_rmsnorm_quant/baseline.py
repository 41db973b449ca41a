"""FlashInfer's fused_add_rmsnorm_quant: its two norm implementations, each chosen by name.

`flashinfer.norm.fused_add_rmsnorm_quant` takes the CuTe DSL kernel where nvidia-cutlass-dsl is
installed and the C++ kernel elsewhere, or as FLASHINFER_USE_CUDA_NORM says. `residual` is updated
in place; `scale` is f32[1] on the device and divides.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "nvidia-cutlass-dsl")


def fused_add_rmsnorm_quant_cute(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the CuTe DSL kernel; it is compiled on the first call."""
    run = import_module("flashinfer.norm.kernels").fused_add_rmsnorm_quant_cute
    arguments = (*_tensors_in_order(tensors), scalars["eps"])
    return lambda: run(*arguments, enable_pdl=pdl)


def fused_add_rmsnorm_quant_cpp(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the C++ kernel; its module is built here."""
    run = import_module("flashinfer.norm").get_norm_module().fused_add_rmsnorm_quant
    arguments = (*_tensors_in_order(tensors), scalars["eps"], pdl)
    return lambda: run(*arguments)


def _tensors_in_order(tensors: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("out", "input", "residual", "weight")
    return (*(tensors[name] for name in names), tensors["scale"].reshape(1))
