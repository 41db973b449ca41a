"""NVFP4 a few rows at a time against the plain formula on the whole array."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels import row_chunks
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.narrowing import float32_is_enough
from kopt.kernels.nvfp4 import QuantizedBlocks, quantize_blocks
from kopt.kernels.nvfp4_operators import silu_mul_expected
from kopt.kernels.rounding import decode, pack_e2m1, round_to_e2m1, round_to_e4m3

Float64s = npt.NDArray[np.float64]


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of some rows be made of many parts."""
    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 4096)
    monkeypatch.setattr(row_chunks, "BLOCK_ELEMENTS", 1024)


def _whole(values: Float64s, global_scale: Float64s) -> QuantizedBlocks:
    scaled = values * global_scale
    blocks = scaled.reshape(*scaled.shape[:-1], -1, 16)
    exact = np.minimum(np.abs(blocks).max(axis=-1) / 6, 448)
    scales = round_to_e4m3(exact)
    divisor = decode(scales)[..., None]
    quotient = np.divide(blocks, divisor, out=np.zeros_like(blocks), where=divisor > 0)
    codes = round_to_e2m1(quotient).reshape(scaled.shape)
    return QuantizedBlocks(scaled, global_scale, exact, scales, pack_e2m1(codes))


def _assert_same(one: QuantizedBlocks, other: QuantizedBlocks) -> None:
    for name in ("scaled", "exact_scales", "scales", "packed"):
        left, right = getattr(one, name), getattr(other, name)
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        # Bytes, because 0 and -0 are equal and have other codes.
        assert np.ascontiguousarray(left).tobytes() == np.ascontiguousarray(right).tobytes(), name


@pytest.mark.parametrize("seed", range(4))
def test_parts_give_what_the_whole_does_bit_by_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((3, 41, 96)) * np.exp2(
        rng.integers(-20, 20, (3, 41, 6)).repeat(16, 2)
    )
    values[rng.random((3, 41)) < 0.3] = 0
    values[rng.random((3, 41)) < 0.1] *= 0  # zeros of both signs
    values[1] = -0.0
    scale = np.array([0.5, 3.0, 1e-3]).reshape(3, 1, 1)

    _assert_same(quantize_blocks(values, scale), _whole(values, scale))
    _assert_same(quantize_blocks(values[0], np.array(7.0)), _whole(values[0], np.array(7.0)))


@pytest.mark.parametrize("far", [2.0**-102, 2.0**101])
def test_where_float32_is_enough_only_a_value_beyond_its_range_stays_float64(far: float) -> None:
    values = np.random.default_rng(3).standard_normal((2, 41, 96))
    values[0, 7] = 0
    whole = _whole(values, np.array(3.0))

    with float32_is_enough():
        within = quantize_blocks(values, np.array(3.0))
        values[1, 30, 5] = far
        beyond = quantize_blocks(values, np.array(3.0))

    _assert_same(within, replace(whole, scaled=whole.scaled.astype(np.float32)))
    _assert_same(beyond, _whole(values, np.array(3.0)))


@pytest.mark.parametrize("masked", [[0, 5, 33], [33, 33, 33], [0, 0, 0]])
def test_masked_rows_of_silu_are_zero_and_the_others_are_the_formulas(masked: list[int]) -> None:
    rng = np.random.default_rng(9)
    size = np.exp2(rng.integers(-30, 9, (3, 33, 64)))
    gate_up = (rng.standard_normal((3, 33, 64)) * size).astype(numpy_dtype("bfloat16"))
    scale, mask = np.array([1.0, 2.5, 100.0], np.float32), np.array(masked, np.int32)

    expected = silu_mul_expected(
        {"input": gate_up, "global_scale": scale, "mask": mask}, "row_major"
    )

    gate, up = np.split(decode(gate_up), 2, axis=-1)
    with np.errstate(over="ignore"):
        product = gate / (1 + np.exp(-gate)) * up
    product[np.arange(33) >= mask[:, None]] = 0
    whole = _whole(product, decode(scale).reshape(3, 1, 1))
    assert expected["out"].exact.tobytes() == whole.scaled.tobytes()
    assert expected["out"].rounded.tobytes() == whole.packed.tobytes()
    assert expected["block_scale"].rounded.tobytes() == whole.scales.tobytes()
