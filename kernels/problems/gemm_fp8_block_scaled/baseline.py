"""Libraries' block-scaled fp8 products into the given output: FlashInfer, DeepGEMM, torch's cuBLAS.

All take the scales of x as they lie here, columns of M padded to 4, and none converts them: the
calls are given the scales in the shape (M, K / 128) with strides 1 and MP, which DeepGEMM and torch
compare with what they would make, and FlashInfer the memory alone.

The first call of a shape compiles in FlashInfer and DeepGEMM, before anything is timed.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "torch", "deep-gemm")

Tensors = Mapping[str, Any]
Scalars = Mapping[str, float | int]


def flashinfer_sm90(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind what fp8_blockscale_gemm_sm90 runs; N must be a multiple of 64.

    Up to 31 rows it lets operands change places. That function allocates a workspace in each call,
    which nothing of this path reads: its runner only asks that there is one.
    """
    del scalars
    _refuse(pdl)
    torch = import_module("torch")
    x, weight, out = (tensors[name] for name in ("x", "weight", "out"))
    if torch.cuda.get_device_capability(x.device) != (9, 0):
        raise NotImplementedError("fp8_blockscale_gemm_sm90 is for sm_90 alone")
    if len(weight) % 64:
        raise NotImplementedError("fp8_blockscale_gemm_sm90 takes N in multiples of 64")
    runner = import_module("flashinfer.gemm.gemm_base").get_fp8_blockscale_gemm_runner_sm90()
    workspace = torch.empty(256, dtype=torch.uint8, device=x.device)
    scales = tensors["x_scale"], tensors["weight_scale"]

    def run() -> object:
        runner.configure_workspace(workspace)
        return runner.run_gemm(x, weight, out, *scales)

    return run


def deep_gemm(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind fp8_gemm_nt, which takes both kinds of scales as they lie on sm_90."""
    del scalars
    _refuse(pdl)
    product = getattr(import_module("deep_gemm"), "fp8_gemm_nt", None)
    if product is None:
        raise NotImplementedError("this release of deep_gemm has no fp8_gemm_nt")
    x = tensors["x"], _scales_of_rows(tensors)
    weight = tensors["weight"], tensors["weight_scale"]
    out = tensors["out"]
    return lambda: product(x, weight, out)


def torch_scaled(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind torch._scaled_mm, which tells 1x128 and 128x128 blocks by the scales' shapes.

    cuBLASLt wants M and K / 128 in multiples of 4.
    """
    del scalars
    _refuse(pdl)
    torch = import_module("torch")
    x, columns, out = tensors["x"], tensors["weight"].t(), tensors["out"]
    x_scale, weight_scale = _scales_of_rows(tensors), tensors["weight_scale"].t()
    if len(x) % 4 or len(weight_scale) % 4:
        raise NotImplementedError("torch takes M and K / 128 in multiples of 4 here")
    return lambda: torch._scaled_mm(
        x, columns, x_scale, weight_scale, out_dtype=out.dtype, use_fast_accum=False, out=out
    )


def _scales_of_rows(tensors: Tensors) -> Any:
    """Return the scales of x by row and block, in place: strides 1 and MP."""
    return tensors["x_scale"].t()[: len(tensors["x"])]


def _refuse(pdl: bool) -> None:
    if pdl:
        raise NotImplementedError("this library has no programmatic dependent launch here")
