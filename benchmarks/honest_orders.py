"""Honest kernels emulated in float32: the orders of rounding that real kernels choose from.

What is emulated is arithmetic only: float32 operations, intermediates rounded to bfloat16 or not,
approximate reciprocals and exponentials (relative noise of 2^-22, two float32 ulp, the bound that
CUDA gives for `--use_fast_math`). `calibrate_gates.py` puts the results before the gates.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.layouts import to_sf_128x4
from kopt.kernels.rounding import pack_e2m1, round_to_bf16, round_to_e2m1, round_to_e4m3

Arrays = dict[str, npt.NDArray[Any]]
Float32s = npt.NDArray[np.float32]

_NOISE = 2.0**-22


@dataclass(frozen=True)
class Order:
    """Which intermediates are rounded to bf16; a kernel may choose each by itself."""

    sum_bf16: bool = False
    """h = bf16(x + r) before the norm; for silu: bf16(silu(gate)) before the product."""
    normed_bf16: bool = False
    """bf16(h * rstd) before the weight."""
    result_bf16: bool = False
    """The result is rounded to bf16 before it is quantised."""

    @property
    def name(self) -> str:
        """The rounded intermediates in words."""
        parts = [name for name, value in vars(self).items() if value]
        return " + ".join(part.replace("_bf16", "") for part in parts) or "fp32 throughout"


@dataclass(frozen=True)
class Emulation:
    """What an honest kernel gives for one problem."""

    orders: tuple[Order, ...]
    run: Callable[[Mapping[str, npt.NDArray[Any]], Order, np.random.Generator], Arrays]


def _orders(**allowed: bool) -> tuple[Order, ...]:
    names = [name for name, varies in allowed.items() if varies]
    return tuple(
        Order(**dict(zip(names, choice, strict=True)))
        for choice in product((False, True), repeat=len(names))
    )


def _bf16(x: Float32s) -> Float32s:
    result: Float32s = round_to_bf16(x).astype(np.float32)
    return result


def _noisy(x: npt.NDArray[Any], rng: np.random.Generator) -> Float32s:
    """Return `x` as an approximate instruction gives it."""
    noisy: Float32s = (x * (1 + rng.uniform(-_NOISE, _NOISE, x.shape))).astype(np.float32)
    return noisy


def _normed(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Float32s:
    """Return the normed sum before its last rounding."""
    h: Float32s = inputs["input"].astype(np.float32) + inputs["residual"].astype(np.float32)
    h = _bf16(h) if order.sum_bf16 else h
    mean = np.mean(h * h, axis=1, keepdims=True, dtype=np.float32)
    normed = h * _noisy(1 / np.sqrt(mean + inputs["eps"]), rng)
    normed = _bf16(normed) if order.normed_bf16 else normed
    result: Float32s = normed * inputs["weight"].astype(np.float32)
    return result


def _residual(inputs: Mapping[str, Any]) -> npt.NDArray[Any]:
    return round_to_bf16(inputs["input"].astype(np.float32) + inputs["residual"].astype(np.float32))


def _silu_mul(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Float32s:
    gate, up = np.split(inputs["input"].astype(np.float32), 2, axis=-1)
    with np.errstate(over="ignore"):
        silu = _noisy(gate / (1 + np.exp(-gate)), rng)
    silu = _bf16(silu) if order.sum_bf16 else silu
    result: Float32s = silu * up
    return result


def _nvfp4(y: Float32s, global_scale: Float32s, rng: np.random.Generator) -> Arrays:
    """Return codes and scales as FlashInfer's kernels compute them, row-major."""
    blocks = y.reshape(*y.shape[:-1], -1, 16)
    amax = np.abs(blocks).max(axis=-1)
    sixth = np.float32(1 / 6)
    scale = round_to_e4m3(_noisy(global_scale * (amax * sixth), rng))
    stored = scale.astype(np.float32)
    with np.errstate(divide="ignore"):
        inverse = np.where(stored > 0, _noisy(1 / stored, rng), 0).astype(np.float32)
    codes = round_to_e2m1(blocks * (global_scale * inverse)[..., None])
    return {"out": pack_e2m1(codes.reshape(y.shape)), "block_scale": scale}


def _add_rmsnorm_fp4(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    y = _normed(inputs, order, rng)
    y = _bf16(y) if order.result_bf16 else y
    return {"residual": _residual(inputs), **_nvfp4(y, inputs["global_scale"], rng)}


def _quantize_fp4(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    del order
    return _nvfp4(inputs["input"].astype(np.float32), inputs["global_scale"], rng)


def _silu_mul_fp4(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    y = _silu_mul(inputs, order, rng)
    y = _bf16(y) if order.result_bf16 else y
    return _nvfp4(y, inputs["global_scale"][:, None, None], rng)


def _add_rmsnorm(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    return {"input": round_to_bf16(_normed(inputs, order, rng)), "residual": _residual(inputs)}


def _add_rmsnorm_fp8(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    y = _normed(inputs, order, rng)
    y = _bf16(y) if order.result_bf16 else y
    codes = round_to_e4m3(y * _noisy(1 / inputs["scale"].astype(np.float32), rng))
    return {"out": codes, "residual": _residual(inputs)}


def _block_fp8(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    fp32 = _normed(inputs, order, rng)
    normed = round_to_bf16(fp32)
    y = normed.astype(np.float32) if order.result_bf16 else fp32
    blocks = y.reshape(len(y), -1, 128)
    amax = np.maximum(np.abs(blocks).max(axis=-1), np.float32(1e-4))
    codes = round_to_e4m3(blocks * _noisy(np.float32(448) / amax, rng)[..., None])
    padded = np.full((amax.shape[1], -(-len(y) // 4) * 4), np.nan, dtype=np.float32)
    padded[:, : len(y)] = _noisy(amax / np.float32(448), rng).T
    return {
        "out": codes.reshape(y.shape),
        "block_scale": padded,
        "normed_out": normed,
        "residual": _residual(inputs),
    }


def _silu(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    return {"out": round_to_bf16(_silu_mul(inputs, order, rng))}


def _merge(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    del order
    s_a, s_b = inputs["s_a"], inputs["s_b"]
    top: Float32s = np.maximum(s_a, s_b)
    top = np.where(top == -np.inf, np.float32(0), top)
    weight_a, weight_b = _noisy(np.exp2(s_a - top), rng), _noisy(np.exp2(s_b - top), rng)
    total = weight_a + weight_b
    with np.errstate(divide="ignore", invalid="ignore"):
        share_a = np.where(total > 0, _noisy(weight_a / total, rng), 0).astype(np.float32)
        share_b = np.where(total > 0, _noisy(weight_b / total, rng), 0).astype(np.float32)
        s_merged = (np.log2(total) + top).astype(np.float32)
    v = _weighted(inputs["v_a"], share_a) + _weighted(inputs["v_b"], share_b)
    return {"v_merged": round_to_bf16(v), "s_merged": s_merged}


def _weighted(vectors: npt.NDArray[Any], share: Float32s) -> Float32s:
    """Return vectors times their shares; without a share they count for nothing."""
    result: Float32s = np.where(share[..., None] > 0, vectors, 0).astype(np.float32)
    return result * share[..., None]


def _rope(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
    del order, rng
    angles = inputs["cos_sin_cache"][inputs["pos_ids"]]
    outputs: Arrays = {}
    scales = {"q": inputs["quant_scale_q"], "k": inputs["quant_scale_kv"]}
    for name, table in (("q_rope", angles[:, None, :]), ("k_rope", angles)):
        x = inputs[name].astype(np.float32)
        half = x.shape[-1] // 2
        first, second = x[..., :half], x[..., half:]
        cosine, sine = table[..., :half], table[..., half:]
        turned = [first * cosine - second * sine, second * cosine + first * sine]
        outputs[f"{name}_out"] = round_to_e4m3(np.concatenate(turned, axis=-1) * scales[name[0]])
    for name in ("q_nope", "k_nope"):
        outputs[f"{name}_out"] = round_to_e4m3(inputs[name].astype(np.float32) * scales[name[0]])
    return outputs


def _tiled(emulation: Emulation) -> Emulation:
    """Return the same kernel with its scales in 128x4 tiles."""

    def run(inputs: Mapping[str, Any], order: Order, rng: np.random.Generator) -> Arrays:
        outputs = emulation.run(inputs, order, rng)
        scale = outputs["block_scale"]
        tiled = to_sf_128x4(scale.view(np.uint8), 0xFF).view(scale.dtype)
        return {**outputs, "block_scale": tiled}

    return Emulation(emulation.orders, run)


_NORM = _orders(sum_bf16=True, normed_bf16=True)
_NORM_QUANT = _orders(sum_bf16=True, normed_bf16=True, result_bf16=True)
_PRODUCT_QUANT = _orders(sum_bf16=True, result_bf16=True)


def emulations() -> Iterator[tuple[str, Emulation]]:
    """Yield the emulated kernels by the name of their problem."""
    norm_fp4 = Emulation(_NORM_QUANT, _add_rmsnorm_fp4)
    quantize = Emulation((Order(),), _quantize_fp4)
    silu_fp4 = Emulation(_PRODUCT_QUANT, _silu_mul_fp4)
    yield "add_rmsnorm_fp4quant", norm_fp4
    yield "add_rmsnorm_fp4quant_sf128x4", _tiled(norm_fp4)
    yield "nvfp4_quantize_linear", quantize
    yield "nvfp4_quantize", _tiled(quantize)
    yield "silu_mul_fp4quant_linear", silu_fp4
    yield "silu_mul_fp4quant", _tiled(silu_fp4)
    yield "fused_add_rmsnorm_fp8_block_quant", Emulation(_NORM_QUANT, _block_fp8)
    yield "fused_add_rmsnorm_quant", Emulation(_NORM_QUANT, _add_rmsnorm_fp8)
    yield "fused_add_rmsnorm", Emulation(_NORM, _add_rmsnorm)
    yield "silu_and_mul", Emulation(_orders(sum_bf16=True), _silu)
    yield "rope_quantize_fp8", Emulation((Order(),), _rope)
    yield "merge_state", Emulation((Order(),), _merge)
