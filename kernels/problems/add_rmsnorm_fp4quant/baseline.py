"""FlashInfer's add_rmsnorm_fp4quant with row-major scales, which exists in the CuTe DSL only.

`residual` is updated in place; `global_scale` is f32[1] on the device and multiplies.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "nvidia-cutlass-dsl")


def add_rmsnorm_fp4quant(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the CuTe DSL kernel; it is compiled on the first call."""
    run = import_module("flashinfer.cute_dsl.add_rmsnorm_fp4quant").add_rmsnorm_fp4quant
    arguments = tuple(tensors[name] for name in ("input", "residual", "weight", "out"))
    global_scale = tensors["global_scale"].reshape(1)
    block_scale = tensors["block_scale"]
    # Scales of the other layout are not asked for and not written, but without a tensor to pass for
    # them each call would allocate one.
    return lambda: run(
        *arguments,
        block_scale,
        global_scale,
        eps=scalars["eps"],
        is_sf_swizzled_layout=False,
        block_scale_unswizzled=block_scale,
        enable_pdl=pdl,
    )
