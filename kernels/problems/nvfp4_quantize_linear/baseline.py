"""FlashInfer's nvfp4_quantize, row-major scales: the CUDA and the CuTe DSL kernel, by name.

Both write into given outputs; `global_scale` is f32[1] on the device and multiplies. The search
over two scales per block (4over6) is off whatever the environment says.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "nvidia-cutlass-dsl")
_VALUES_PER_SCALE = 16
_STANDARD_RECIPE = 0  # flashinfer's NVFP4_4OVER6_CODE_STANDARD


def nvfp4_quantize_cpp(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the CUDA kernel; its module is built here."""
    del scalars
    if tensors["input"].shape[0] % 16:
        raise NotImplementedError("FlashInfer pads row-major scales to 16 rows")
    run = _cuda_module(tensors["input"].device).fp4_quantize
    values, global_scale, out, block_scale = _arguments(tensors)
    is_ue8m0, is_swizzled, is_8x4, is_scale_inverted = False, False, False, False
    flags = (_VALUES_PER_SCALE, is_ue8m0, is_swizzled, is_8x4, is_scale_inverted, pdl)
    return lambda: run(values, global_scale, out, block_scale, *flags, _STANDARD_RECIPE)


def nvfp4_quantize_cute(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the CuTe DSL kernel; it is compiled on the first call."""
    del scalars
    kernels = import_module("flashinfer.quantization.kernels.nvfp4_quantize")
    run, layout = kernels.nvfp4_quantize_cute_dsl, kernels.SF_LAYOUT_LINEAR
    values, global_scale, out, block_scale = _arguments(tensors)
    return lambda: run(
        values,
        global_scale,
        sf_layout=layout,
        enable_pdl=pdl,
        nvfp4_4over6=None,
        out=(out, block_scale),
    )


def _arguments(tensors: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Input, global scale as f32[1], codes and scales as bytes."""
    scale_bytes = tensors["block_scale"].view(import_module("torch").uint8)
    return tensors["input"], tensors["global_scale"].reshape(1), tensors["out"], scale_bytes


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
