"""Honest ways to compute sums, products, softmax and norms in float32, and faulty ones beside them.

Every intermediate is float32 (or what the fault makes of it); only the order differs.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
F32 = np.float32


def sequential(terms: Array) -> Array:
    """Add the last axis up one after another."""
    total: Array = np.zeros(terms.shape[:-1], dtype=terms.dtype)
    for column in range(terms.shape[-1]):
        total = (total + terms[..., column]).astype(terms.dtype)
    return total


def blocked(terms: Array, width: int = 32) -> Array:
    """Add blocks up one after another, then their sums."""
    starts = range(0, terms.shape[-1], width)
    return sequential(np.stack([sequential(terms[..., s : s + width]) for s in starts], axis=-1))


def strided(terms: Array, lanes: int = 32) -> Array:
    """Add every 32nd term up, then the lanes in a tree, as a warp does."""
    padded = np.zeros((*terms.shape[:-1], -(-terms.shape[-1] // lanes) * lanes), dtype=terms.dtype)
    padded[..., : terms.shape[-1]] = terms
    parts = sequential(np.moveaxis(padded.reshape(*terms.shape[:-1], -1, lanes), -1, -2))
    while parts.shape[-1] > 1:
        half = parts.shape[-1] // 2
        parts = (parts[..., :half] + parts[..., half:]).astype(terms.dtype)
    return np.asarray(parts[..., 0])


SUMS: dict[str, Callable[[Array], Array]] = {
    "sequential": sequential,
    "backwards": lambda terms: sequential(terms[..., ::-1]),
    "blocked": blocked,
    "strided": strided,
}


def product(a: Array, b: Array, add: Callable[[Array], Array]) -> Array:
    """Multiply matrices, each element's products added up by `add`."""
    return add((a[:, None, :] * b.T[None, :, :]).astype(a.dtype))


def fused_product(a: Array, b: Array) -> Array:
    """Multiply matrices with fused multiply-adds, one after another."""
    total: Array = np.zeros((a.shape[0], b.shape[1]), dtype=F32)
    for k in range(a.shape[1]):
        exact: Array = a[:, k, None].astype(np.float64) * b[None, k, :].astype(np.float64)
        exact += total
        total = np.asarray(exact, dtype=F32)
    return total


def split_product(a: Array, b: Array, parts: int = 4) -> Array:
    """Multiply matrices, the sum split into parts that are added last."""
    pieces = [
        fused_product(*pair)
        for pair in zip(np.array_split(a, parts, 1), np.array_split(b, parts), strict=True)
    ]
    return sequential(np.stack(pieces, axis=-1))


def softmax_two_passes(x: Array, add: Callable[[Array], Array] = strided) -> Array:
    """Take the maximum first; exponentials as powers of two."""
    less = x - x.max(axis=-1, keepdims=True)
    powers = np.exp2(less * F32(1.4426950408889634)).astype(F32)
    return np.asarray(powers / add(powers)[..., None])


def softmax_online(x: Array) -> Array:
    """Rescale the running sum whenever the maximum grows."""
    largest: Array = np.full(x.shape[:-1], -np.inf, dtype=F32)
    total: Array = np.zeros(x.shape[:-1], dtype=F32)
    for start in range(0, x.shape[-1], 16):
        part = x[..., start : start + 16]
        new = np.maximum(largest, part.max(axis=-1))
        total = total * np.exp(largest - new) + sequential(np.exp(part - new[..., None]))
        largest = new
    return np.asarray(np.exp(x - largest[..., None]) / total[..., None])


def norm_two_passes(x: Array, add: Callable[[Array], Array] = strided) -> Array:
    """Normalise rows: the mean, then the mean square of the distances."""
    count = F32(x.shape[-1])
    apart = x - (add(x) / count)[..., None]
    variance = add(apart * apart) / count
    return np.asarray(apart * (F32(1) / np.sqrt(variance + F32(1e-5)))[..., None])


def norm_welford(x: Array) -> Array:
    """Normalise rows by Welford's running mean and squares."""
    mean: Array = np.zeros(x.shape[:-1], dtype=F32)
    squares: Array = np.zeros(x.shape[:-1], dtype=F32)
    for column in range(x.shape[-1]):
        away = x[..., column] - mean
        mean = mean + away / F32(column + 1)
        squares = squares + away * (x[..., column] - mean)
    variance = squares / F32(x.shape[-1])
    return np.asarray((x - mean[..., None]) / np.sqrt(variance + F32(1e-5))[..., None])


def as_bf16(x: Array) -> Array:
    """Return float32 values of bfloat16 precision."""
    return x.astype(ml_dtypes.bfloat16).astype(F32)


def as_tf32(x: Array) -> Array:
    """Return float32 values rounded to TF32."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x0FFF) + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(F32)


def added_in_fp16(terms: Array) -> Array:
    """Add up in float16, as a fault."""
    return sequential(terms.astype(np.float16)).astype(F32)
