"""NVFP4 quantisation against scalar arithmetic with exact fractions."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.nvfp4 import QuantizedBlocks, expected_outputs, global_scale_of, quantize_blocks
from kopt.kernels.rounding import decode, decode_e2m1, unpack_e2m1
from support.narrow_values import e4m3_magnitudes, nearest

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def _quantize(values: npt.NDArray[np.float64], scale: float = 1.0) -> QuantizedBlocks:
    return quantize_blocks(values, np.array(scale))


def _codes(quantized: QuantizedBlocks) -> npt.NDArray[np.float64]:
    return decode_e2m1(unpack_e2m1(quantized.packed))


def _block(*values: float) -> npt.NDArray[np.float64]:
    """Return one row of one block: `values`, then zeros."""
    row = np.zeros((1, 16))
    row[0, : len(values)] = values
    return row


def _nearest_fraction(magnitudes: tuple[float, ...], value: Fraction) -> float:
    """Return the nearest value by exact distance, ties to the even code, saturating."""
    distances = [(abs(abs(value) - Fraction(m)), code % 2, m) for code, m in enumerate(magnitudes)]
    best = min(distances)[2]
    return -best if value < 0 else best


def test_scales_and_codes_are_those_of_exact_fractions() -> None:
    rng = np.random.default_rng(5)
    # 8-bit significands and a scale of a few bits make many exact midpoints.
    significands = rng.integers(-128, 128, (8, 64)).astype(np.float64)
    values = np.ldexp(significands, rng.integers(-18, 1, (8, 64)))
    scale = Fraction(21, 8)
    quantized = _quantize(values, float(scale))
    scales, codes = decode(quantized.scales), _codes(quantized)
    for row, column in np.ndindex(8, 4):
        block = [Fraction(v) * scale for v in values[row, 16 * column : 16 * column + 16].tolist()]
        exact = min(max(abs(v) for v in block) / 6, Fraction(448))
        rounded = _nearest_fraction(e4m3_magnitudes(), exact)
        assert float(scales[row, column]) == rounded
        wanted = [_nearest_fraction(E2M1, v / Fraction(rounded)) if rounded else 0 for v in block]
        assert codes[row, 16 * column : 16 * column + 16].tolist() == wanted


def test_dequantised_values_are_within_half_a_step_of_their_block() -> None:
    values = np.random.default_rng(6).standard_normal((16, 256))
    scale = float(global_scale_of(float(np.abs(values).max())))
    quantized = _quantize(values, scale)
    block_scales = np.repeat(decode(quantized.scales), 16, axis=1)
    error = np.abs(values * scale - _codes(quantized) * block_scales)
    # The widest step is 2, from 4 to 6; a scale that was rounded down leaves up to 6 * 17 / 16.
    assert (error <= block_scales).all()
    assert error.max() > 0.9 * block_scales.min()


def test_a_block_of_zeros_has_scale_zero_and_codes_zero() -> None:
    quantized = _quantize(np.array([[0.0] * 16 + [-0.0] * 16]))
    assert quantized.scales.view(np.uint8).tolist() == [[0, 0]]
    assert quantized.packed.max() == 0


@pytest.mark.parametrize(("amax", "scale"), [(6 * 1.0625, 1.0), (6 * (1.0625 + 2.0**-40), 1.125)])
def test_scales_next_to_a_midpoint_are_rounded_once(amax: float, scale: float) -> None:
    assert decode(_quantize(_block(amax)).scales).tolist() == [[scale]]


@pytest.mark.parametrize(
    ("amax", "scale"),
    [(6 * 2.0**-10, 0.0), (6.001 * 2.0**-10, 2.0**-9), (6 * 2.0**-9, 2.0**-9), (2688.0, 448.0)],
)
def test_scales_reach_from_the_least_subnormal_to_the_largest(amax: float, scale: float) -> None:
    assert decode(_quantize(_block(amax)).scales).tolist() == [[scale]]


def test_a_block_without_a_scale_has_codes_zero() -> None:
    assert _quantize(_block(2.0**-10, -(2.0**-12))).packed.max() == 0


def test_a_block_beyond_the_largest_scale_saturates() -> None:
    quantized = _quantize(_block(1e6, -1e6, 448.0, 700.0))
    assert quantized.exact_scales.tolist() == [[448.0]]
    assert _codes(quantized)[0, :4].tolist() == [6.0, -6.0, 1.0, 1.5]


def test_codes_are_divided_by_the_rounded_scale() -> None:
    # 6.2 / 6 = 1.0333 rounds to 1: the exact scale would make 1.27 / 1.0333 a 1.0.
    assert _codes(_quantize(_block(6.2, 1.27)))[0, :2].tolist() == [6.0, 1.5]


def test_the_even_element_lies_in_the_low_nibble() -> None:
    assert _quantize(_block(6.0, 0.5, -1.0)).packed[0, :2].tolist() == [0x17, 0x0A]


def test_a_global_scale_gives_the_largest_block_the_largest_scale() -> None:
    quantized = _quantize(_block(3.7), float(global_scale_of(3.7)))
    assert decode(quantized.scales).tolist() == [[448.0]]
    assert global_scale_of(0.0) == 1.0


def test_each_batch_uses_its_own_global_scale() -> None:
    values = np.ones((2, 3, 16))
    quantized = quantize_blocks(values, np.array([6.0, 12.0]).reshape(2, 1, 1))
    assert decode(quantized.scales)[..., 0].tolist() == [[1.0] * 3, [2.0] * 3]


def test_tiled_scales_lie_where_rearranged_tiles_put_them() -> None:
    rows, blocks = 200, 6
    values = np.random.default_rng(1).standard_normal((rows, 16 * blocks))
    quantized = _quantize(values)
    scales = expected_outputs(quantized, "sf_128x4", np.ones(rows, dtype=np.bool_))["block_scale"]
    # Pad, cut into (2, 4, 32) x (2, 4) and bring rows to the middle: the layout without a formula.
    padded = np.zeros((256, 8), dtype=np.uint8)
    padded[:rows, :blocks] = quantized.scales.view(np.uint8)
    tiles = padded.reshape(2, 4, 32, 2, 4).transpose(0, 3, 2, 1, 4).ravel()
    assert (scales.rounded.view(np.uint8) == tiles).all()


def test_padding_of_tiled_scales_is_not_written() -> None:
    quantized = _quantize(np.ones((5, 48)))
    scales = expected_outputs(quantized, "sf_128x4", np.ones(5, dtype=np.bool_))["block_scale"]
    assert scales.written.shape == (512,)
    assert np.flatnonzero(scales.written).tolist() == [
        16 * row + block for row in range(5) for block in range(3)
    ]


@pytest.mark.parametrize("layout", ["row_major", "sf_128x4"])
def test_rows_that_are_not_valid_are_not_written(layout: str) -> None:
    quantized = _quantize(np.ones((2, 3, 32)))
    valid = np.array([[True, False, False], [True, True, True]])
    outputs = expected_outputs(
        quantized, "row_major" if layout == "row_major" else "sf_128x4", valid
    )
    assert outputs["out"].written.sum(axis=(1, 2)).tolist() == [16, 48]
    assert outputs["block_scale"].written.reshape(2, -1).sum(axis=1).tolist() == [2, 6]


def test_logical_offsets_find_every_scale_of_every_batch() -> None:
    values = np.random.default_rng(2).standard_normal((3, 130, 80))
    quantized = _quantize(values)
    valid = np.ones((3, 130), dtype=np.bool_)
    scales = expected_outputs(quantized, "sf_128x4", valid)["block_scale"]
    assert scales.logical_offsets is not None
    assert scales.rounded.shape == (3, 2 * 2 * 512)
    found = scales.rounded.ravel()[scales.logical_offsets]
    assert (found.view(np.uint8) == quantized.scales.view(np.uint8)).all()
    assert scales.written.ravel()[scales.logical_offsets].all()
    assert scales.written.sum() == scales.logical_offsets.size


def test_expected_codes_carry_what_their_scales_divide() -> None:
    quantized = _quantize(_block(3.0, -1.0), 8.0)
    codes = expected_outputs(quantized, "row_major", np.ones(1, dtype=np.bool_))["out"]
    assert codes.scaled_by is not None
    assert (codes.scaled_by.tensor, codes.scaled_by.block) == ("block_scale", 16)
    assert codes.exact[0, :2].tolist() == [24.0, -8.0]
    assert codes.unit == 1 / 8


def test_random_scales_agree_with_the_search() -> None:
    maxima = np.exp2(np.random.default_rng(3).uniform(-9, 12, 500))
    values = np.zeros((500, 16))
    values[:, 7] = -maxima
    found = decode(_quantize(values).scales)[:, 0].tolist()
    assert found == [nearest(e4m3_magnitudes(), m / 6) for m in maxima.tolist()]
