"""Products of matrices as kernels sum them: in fp32 in many orders, and in formats too narrow."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.wide_work import slices

Matrix = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


def one_after_the_other(x: Floats, weight: Floats) -> Floats:
    """Return sums of K fused multiply-adds in fp32, in the order of k."""
    return narrow_sums(x, weight, "float32", 1)


def narrow_sums(x: Floats, weight: Floats, dtype: str, step: int) -> Floats:
    """Return sums in `dtype`, to which `step` products at once are added exactly."""
    sums = np.zeros((x.shape[0], weight.shape[0]), dtype=numpy_dtype(dtype))
    for part in slices(x.shape[1], step):
        more = x[:, part] @ weight[:, part].T
        with np.errstate(over="ignore"):
            sums = (sums.astype(np.float64) + more).astype(sums.dtype)
    return sums.astype(np.float64)


def in_pairs(x: Floats, weight: Floats) -> Floats:
    """Return sums by a tree of fp32 additions, as shuffles of a warp make them."""
    products = (x[:, None, :] * weight[None, :, :]).astype(np.float32)
    while products.shape[-1] > 1:
        if products.shape[-1] % 2:
            products = np.concatenate([products, np.zeros_like(products[..., :1])], axis=-1)
        products = products[..., 0::2] + products[..., 1::2]
    return products[..., 0].astype(np.float64)


def in_parts(x: Floats, weight: Floats, parts: int, dtype: str = "float32") -> Floats:
    """Return split-K sums: exact ones of each part, stored as `dtype` and added in fp32."""
    total = np.zeros((x.shape[0], weight.shape[0]), dtype=np.float32)
    for part in slices(x.shape[1], -(-x.shape[1] // parts)):
        partial = x[:, part] @ weight[:, part].T
        with np.errstate(over="ignore"):
            total += partial.astype(numpy_dtype(dtype)).astype(np.float32)
    return total.astype(np.float64)


def by_tensor_cores(x: Floats, weight: Floats, step: int = 8) -> Floats:
    """Return sums to which `step` products at once are added, and cut off, not rounded.

    Every term is cut off at one bit more than fp32 has of the largest of them, and so is the sum at
    fp32's own: Ampere's arithmetic by Fasi and others (kernels/problems/gemm_bf16/oracle.py). Later
    GPUs keep more bits, and take more products at once.
    """
    sums = np.zeros((x.shape[0], weight.shape[0]))
    for part in slices(x.shape[1], step):
        terms = x[:, None, part] * weight[None, :, part]
        largest = np.maximum(np.abs(terms).max(axis=-1), np.abs(sums))
        last = np.ldexp(1.0, np.frexp(largest)[1] - 25)
        cut = np.trunc(terms / last[..., None]).sum(axis=-1) + np.trunc(sums / last)
        sums = _cut_to_fp32(cut * last)
    return sums


def _cut_to_fp32(values: Floats) -> Floats:
    mantissa, exponent = np.frexp(values)
    cut: Floats = np.ldexp(np.trunc(np.ldexp(mantissa, 24)), exponent - 24)
    return cut
