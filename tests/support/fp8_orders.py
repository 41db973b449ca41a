"""Products of block-scaled fp8 codes as kernels sum them: on Hopper's tensor cores, and wrongly."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.oracle import Arrays
from kopt.kernels.rounding import decode
from kopt.kernels.wide_work import slices

Floats = npt.NDArray[np.float64]
BLOCK = 128


@dataclass(frozen=True)
class ScaledCodes:
    """The operands of gemm_fp8_block_scaled, decoded: scales by block and row."""

    x: Floats
    weight: Floats
    x_scale: Floats
    """(K / 128, M)."""
    weight_scale: Floats
    """(K / 128, N): each column of the result has the scale of its block of 128."""


def operands(inputs: Arrays) -> ScaledCodes:
    """Return the decoded operands of a case."""
    x, weight = decode(inputs["x"]), decode(inputs["weight"])
    of_columns = np.arange(len(weight)) // BLOCK
    return ScaledCodes(
        x,
        weight,
        decode(inputs["x_scale"])[:, : len(x)],
        decode(inputs["weight_scale"])[of_columns].T,
    )


def promoted(codes: ScaledCodes, step: int = 32, bits: int = 14, dtype: str = "float32") -> Floats:
    """Return sums of 128 products by tensor cores, each scaled in fp32 and added in `dtype`."""
    total = np.zeros((len(codes.x), len(codes.weight)), dtype=numpy_dtype(dtype))
    for block, part in enumerate(slices(codes.x.shape[1], BLOCK)):
        sums = tensor_core_sums(codes.x[:, part], codes.weight[:, part], step, bits)
        added = sums.astype(np.float32) * scales(codes, block).astype(np.float32)
        total = (total.astype(np.float32) + added).astype(total.dtype)
    return total.astype(np.float64)


def in_parts(codes: ScaledCodes, parts: int, dtype: str = "float32") -> Floats:
    """Return split-K sums: promoted ones of each part, stored as `dtype` and added in fp32."""
    total = np.zeros((len(codes.x), len(codes.weight)), dtype=np.float32)
    blocks = len(codes.x_scale)
    for part in slices(blocks, -(-blocks // parts)):
        total += promoted(_blocks(codes, part)).astype(numpy_dtype(dtype)).astype(np.float32)
    return total.astype(np.float64)


def never_promoted(codes: ScaledCodes) -> Floats:
    """Return sums that stay in the tensor cores' registers, rescaled there for each block."""
    total = np.zeros((len(codes.x), len(codes.weight)))
    for block, part in enumerate(slices(codes.x.shape[1], BLOCK)):
        scale = scales(codes, block)
        sums = tensor_core_sums(codes.x[:, part], codes.weight[:, part], 32, 14, total / scale)
        total = sums * scale
    return total


def unpromoted_blocks(codes: ScaledCodes, count: int) -> Floats:
    """Return sums of `count` blocks each that stay in the registers, added in fp32."""
    total = np.zeros((len(codes.x), len(codes.weight)), dtype=np.float32)
    for part in slices(len(codes.x_scale), count):
        total += never_promoted(_blocks(codes, part)).astype(np.float32)
    return total.astype(np.float64)


def _blocks(codes: ScaledCodes, part: slice) -> ScaledCodes:
    of_k = slice(part.start * BLOCK, part.stop * BLOCK)
    return ScaledCodes(
        codes.x[:, of_k], codes.weight[:, of_k], codes.x_scale[part], codes.weight_scale[part]
    )


def scales(codes: ScaledCodes, block: int) -> Floats:
    """Return what the sums of a block are multiplied by, for each element of the result."""
    product: Floats = codes.x_scale[block][:, None] * codes.weight_scale[block]
    return product


def tensor_core_sums(
    x: Floats, weight: Floats, step: int, bits: int, before: Floats | None = None
) -> Floats:
    """Return sums to which `step` products at once are added, in registers of `bits` bits.

    All terms, the sum so far among them, are cut off at `bits` bits of the largest, and so is what
    they come to. Sources: kernels/problems/gemm_fp8_block_scaled/oracle.py.
    """
    sums = np.zeros((len(x), len(weight))) if before is None else before
    for part in slices(x.shape[1], step):
        terms = x[:, None, part] * weight[None, :, part]
        largest = np.maximum(np.abs(terms).max(axis=-1), np.abs(sums))
        last = np.ldexp(1.0, np.frexp(largest)[1] - bits)
        sums = (np.trunc(terms / last[..., None]).sum(axis=-1) + np.trunc(sums / last)) * last
        mantissa, exponent = np.frexp(sums)
        sums = np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)
    return sums
