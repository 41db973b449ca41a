"""Inputs and expected outputs of the operators that end in NVFP4: the body of their oracles.

An operator has one problem for each layout of its scales; the `oracle.py` of both binds the
functions here to its layout. Everything is computed in float64 from the stored inputs, without any
rounding between input and output: kernels round on the way (FlashInfer rounds h or silu(a) * b to
bfloat16), and the gates allow for it.

`huge` inputs come with global scales twice as large as production's, as if they had been calibrated
on data of half the size: blocks beyond amax / 2 saturate. In `mixed` more than 2^20 lies between
the blocks: small ones have subnormal scales or none.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import numpy_dtype
from .input_regimes import Magnitudes, draw_amplitudes, draw_values
from .nvfp4 import expected_outputs, global_scale_of, quantize_blocks, quantize_rows
from .oracle import Arrays, Expected
from .problem import Layout, Workload
from .rmsnorm import draw_add_rmsnorm_inputs, exact_add_rmsnorm, expected_residual
from .rounding import decode
from .row_chunks import for_row_chunks

Inputs = dict[str, npt.NDArray[Any]]
Float64s = npt.NDArray[np.float64]

MAGNITUDES = Magnitudes(tiny=2.0**-36, huge=2.0**36)
EPS = 1e-6  # of the problem.yaml; the inputs need it for amax alone


def add_rmsnorm_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return input and residual (B, H), weight (H), and the global_scale () of the normed rows."""
    inputs = draw_add_rmsnorm_inputs(rng, (workload.axes["B"], workload.axes["H"]), regime)
    normed = exact_add_rmsnorm(inputs["input"], inputs["residual"], inputs["weight"], EPS)
    amax = max(float(normed.max()), -float(normed.min()))
    return {**inputs, "global_scale": _global_scale(amax, regime)}


def add_rmsnorm_expected(
    inputs: Arrays, scalars: Mapping[str, float | int], layout: Layout
) -> dict[str, Expected]:
    """Return the residual h = input + residual, and h / rms(h) * weight in NVFP4."""
    x, residual = inputs["input"], inputs["residual"]
    normed = exact_add_rmsnorm(x, residual, inputs["weight"], float(scalars["eps"]))
    quantized = quantize_blocks(normed, decode(inputs["global_scale"]))
    outputs = expected_outputs(quantized, layout, np.ones(len(x), dtype=np.bool_))
    return {"residual": expected_residual(x, residual), **outputs}


def quantize_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return input (M, K) and global_scale ()."""
    shape = (workload.axes["M"], workload.axes["K"])
    amplitudes = draw_amplitudes(rng, shape, regime, MAGNITUDES)
    values = draw_values(rng, shape, amplitudes).astype(numpy_dtype("bfloat16"))
    return {"input": values, "global_scale": _global_scale(_largest_bf16(values), regime)}


def quantize_expected(inputs: Arrays, layout: Layout) -> dict[str, Expected]:
    """Return the input in NVFP4."""
    x = inputs["input"]
    scale = decode(inputs["global_scale"])
    quantized = quantize_rows(lambda part: decode(x[part]), x.shape, scale)
    return expected_outputs(quantized, layout, np.ones(len(x), dtype=np.bool_))


def silu_mul_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return input (B, M, 2 K), mask (B) and global_scale (B): one scale per expert.

    Blocks and outliers of a regime are those of up, since silu hides a gate that is large and
    negative; gate and up share what all values have in common. Rows beyond the mask have values
    too. The mask is full for "normal"; otherwise one expert is full, one empty, the others
    anything between.
    """
    experts, rows, columns = (workload.axes[name] for name in ("B", "M", "K"))
    common = {"tiny": MAGNITUDES.tiny, "huge": MAGNITUDES.huge}.get(regime, 1.0) ** 0.5
    mask = _draw_mask((experts, rows), rng, regime)
    values = np.empty((experts, rows, 2 * columns), dtype=numpy_dtype("bfloat16"))
    scales = np.empty(experts, dtype=np.float32)
    for expert in range(experts):
        amplitudes = draw_amplitudes(rng, (rows, columns), regime, MAGNITUDES)
        gate = draw_values(rng, (rows, columns), np.full((1, 1), common, dtype=np.float32))
        up = draw_values(rng, (rows, columns), amplitudes / np.float32(common))
        values[expert, :, :columns], values[expert, :, columns:] = gate, up
        scales[expert] = _global_scale(_largest_silu_mul(values[expert, : mask[expert]]), regime)
    return {"input": values, "global_scale": scales, "mask": mask}


def silu_mul_expected(inputs: Arrays, layout: Layout) -> dict[str, Expected]:
    """Return silu(gate) * up in NVFP4 for the first mask[b] rows of every expert b.

    All other rows keep what they had; 0 stands for them in `exact` and `rounded`.
    """
    shape: tuple[int, ...] = inputs["input"].shape
    experts, rows, both = shape
    mask: npt.NDArray[np.int32] = inputs["mask"].reshape(experts, 1)
    valid: npt.NDArray[np.bool_] = np.less(np.arange(rows), mask)
    gate_up, is_valid = inputs["input"].reshape(-1, both), valid.reshape(-1)

    def multiply(part: slice) -> Float64s:
        if is_valid[part].all():
            return _silu_mul(gate_up[part])
        product = np.zeros((is_valid[part].size, both // 2))
        product[is_valid[part]] = _silu_mul(gate_up[part][is_valid[part]])
        return product

    global_scale = decode(inputs["global_scale"]).reshape(experts, 1, 1)
    quantized = quantize_rows(multiply, (experts, rows, both // 2), global_scale)
    return expected_outputs(quantized, layout, valid)


def _silu_mul(gate_up: npt.NDArray[Any]) -> Float64s:
    """Return silu(gate) * up of (rows, 2 K) bfloat16, gate first, as (rows, K)."""
    gate, up = np.split(gate_up, 2, axis=-1)
    product: Float64s = np.take(_silu_of_bf16(), gate.view(np.uint16), mode="wrap")
    product *= decode(up)
    return product


@cache
def _silu_of_bf16() -> Float64s:
    """Return silu of every bfloat16, by its bits."""
    every = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype("bfloat16"))
    with np.errstate(over="ignore", invalid="ignore"):
        gate = decode(every)
        silu: Float64s = gate / (1 + np.exp(-gate))  # exp is inf for gates below -709: silu is 0
    return silu


def _largest_silu_mul(gate_up: npt.NDArray[Any]) -> float:
    """Return the largest magnitude of silu(gate) * up; 0 without rows."""
    rows, both = gate_up.shape

    def largest(part: slice) -> float:
        product = _silu_mul(gate_up[part])
        return max(float(product.max()), -float(product.min()))

    return max(for_row_chunks(rows, both // 2, largest), default=0.0)


def _largest_bf16(values: npt.NDArray[Any]) -> float:
    """Return the largest magnitude of finite bfloat16 numbers, whose bits ascend with it."""
    bits = np.max(values.view(np.uint16) & np.uint16(0x7FFF), keepdims=True)
    return float(bits.view(values.dtype).item())


def _global_scale(amax: float, regime: str) -> npt.NDArray[np.float32]:
    headroom = 2 if regime == "huge" else 1
    return np.array(global_scale_of(amax / headroom), dtype=np.float32)


def _draw_mask(
    shape: tuple[int, int], rng: np.random.Generator, regime: str
) -> npt.NDArray[np.int32]:
    """Return the valid rows of every expert for (experts, rows)."""
    experts, rows = shape
    if regime == "normal":
        return np.full(experts, rows, dtype=np.int32)
    counts = np.concatenate([[rows, 0], rng.integers(0, rows + 1, experts)])[:experts]
    return rng.permutation(counts).astype(np.int32)
