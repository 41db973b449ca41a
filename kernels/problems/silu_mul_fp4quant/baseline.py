"""FlashInfer's silu_and_mul_scaled_nvfp4_experts_quantize, which exists in CUDA only.

It writes scales in 128x4 tiles, has no programmatic dependent launch, and leaves the rows
beyond an expert's mask alone. The search over two scales per block (4over6) is off whatever the
environment says.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python",)
_STANDARD_RECIPE = 0  # flashinfer's NVFP4_4OVER6_CODE_STANDARD


def silu_and_mul_scaled_nvfp4_experts_quantize(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the CUDA kernel; its module is built here."""
    del scalars
    if pdl:
        raise NotImplementedError("FlashInfer's operator has no programmatic dependent launch")
    gate_and_up, out = tensors["input"], tensors["out"]
    experts, rows, columns = gate_and_up.shape
    # Four scales are one int32; each expert's rows are padded to 128.
    scale_words = tensors["block_scale"].view(import_module("torch").int32)
    scales = scale_words.view(experts * -(-rows // 128) * 128, -1)
    run = _cuda_module(gate_and_up.device).silu_and_mul_scaled_nvfp4_experts_quantize
    arguments = (
        out.view(experts * rows, -1),
        scales,
        gate_and_up.view(experts * rows, columns),
        tensors["global_scale"],
        tensors["mask"],
    )
    applies_silu = True
    return lambda: run(*arguments, applies_silu, _STANDARD_RECIPE)


@cache
def _cuda_module(device: Any) -> Any:
    """Build the module that FlashInfer itself would take on `device`.

    Its own getter hides the function that takes outputs. sm_120 and sm_121 share a family build.
    """
    operators = import_module("flashinfer.quantization.fp4_quantization")
    major, minor = import_module("flashinfer.utils").get_compute_capability(device)
    for target in (f"{major}0f", f"{major}{minor}"):
        generate = getattr(operators, f"gen_fp4_quantization_sm{target}_module", None)
        if generate is not None:
            return generate().build_and_load()
    raise NotImplementedError(f"FlashInfer has no NVFP4 module for sm_{major}{minor}")
