"""FlashInfer's fused_add_rmsnorm_fp8_block_quant, which exists in C++ only.

`block_scale` is f32[H/128, rup(B, 4)], one row per block column; `residual` is updated in place.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python",)
_CALL_ORDER = ("out", "block_scale", "normed_out", "input", "residual", "weight")


def fused_add_rmsnorm_fp8_block_quant(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the C++ kernel; its module is built here."""
    run = import_module("flashinfer.norm").get_norm_module().fused_add_rmsnorm_fp8_block_quant
    arguments = (*(tensors[name] for name in _CALL_ORDER), scalars["eps"], pdl)
    return lambda: run(*arguments)
