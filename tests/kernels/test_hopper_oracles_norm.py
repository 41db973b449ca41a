"""The add + RMSNorm oracles: exact fractions, and FlashInfer's fp32 order within the gates."""

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.rounding import decode, round_to_bf16, round_to_e4m3
from support.gates import l2_ratio, refused_codes, worst_bf16_ulps, worst_row_l2_ratio
from support.narrow_values import bf16_magnitudes, e4m3_magnitudes, nearest
from support.oracle_run import Inputs, OracleRun, draw, expect

BLOCK_QUANT = "fused_add_rmsnorm_fp8_block_quant"
TENSOR_QUANT = "fused_add_rmsnorm_quant"
PLAIN = "fused_add_rmsnorm"
AXES = {"B": 5, "H": 384}
EPS = Fraction(float(np.float32(1e-6)))
BFLOAT16 = numpy_dtype("bfloat16")


def _normed_by_hand(inputs: Inputs) -> list[list[float]]:
    """Return the normed rows, each value from exact fractions and a 50-digit square root."""
    weight = [Fraction(value) for value in decode(inputs["weight"]).tolist()]
    rows: list[list[float]] = []
    for x_row, residual_row in zip(
        decode(inputs["input"]).tolist(), decode(inputs["residual"]).tolist(), strict=True
    ):
        h = [Fraction(x) + Fraction(r) for x, r in zip(x_row, residual_row, strict=True)]
        square = sum((value * value for value in h), Fraction(0)) / len(h) + EPS
        with localcontext(prec=50):
            root = Fraction((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())
        rows.append([float(a / root * w) for a, w in zip(h, weight, strict=True)])
    return rows


def _scales_by_hand(normed: list[list[float]]) -> list[list[float]]:
    """Return each row's scales from its bf16-rounded values in blocks of 128."""
    scales: list[list[float]] = []
    for row in normed:
        magnitudes = [abs(nearest(bf16_magnitudes(), value)) for value in row]
        blocks = [magnitudes[start : start + 128] for start in range(0, len(row), 128)]
        scales.append([max(*block, float(np.float32(1e-4))) / 448 for block in blocks])
    return scales


def _rows(x: npt.NDArray[Any], residual: npt.NDArray[Any]) -> Inputs:
    weight = np.ones(x.shape[1], dtype=BFLOAT16)
    return {"input": x.astype(BFLOAT16), "residual": residual.astype(BFLOAT16), "weight": weight}


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(
    ("name", "tensor"), [(BLOCK_QUANT, "normed_out"), (PLAIN, "input")], ids=[BLOCK_QUANT, PLAIN]
)
def test_normed_values_are_those_of_exact_fractions(name: str, tensor: str, regime: str) -> None:
    run = draw(name, AXES, regime)
    by_hand = _normed_by_hand(run.inputs)
    np.testing.assert_allclose(run.outputs[tensor].exact, by_hand, rtol=1e-13)
    rounded = [[nearest(bf16_magnitudes(), value) for value in row] for row in by_hand]
    np.testing.assert_array_equal(decode(run.outputs[tensor].rounded), rounded)


@pytest.mark.parametrize("regime", REGIMES)
def test_codes_of_one_scale_are_those_of_exact_fractions(regime: str) -> None:
    run = draw(TENSOR_QUANT, AXES, regime)
    scale = float(run.inputs["scale"])
    scaled = [[value / scale for value in row] for row in _normed_by_hand(run.inputs)]
    np.testing.assert_allclose(run.outputs["out"].exact, scaled, rtol=1e-13)
    codes = [[nearest(e4m3_magnitudes(), value) for value in row] for row in scaled]
    np.testing.assert_array_equal(decode(run.outputs["out"].rounded), codes)


@pytest.mark.parametrize("regime", REGIMES)
def test_block_scales_and_codes_are_those_of_scalar_loops(regime: str) -> None:
    run = draw(BLOCK_QUANT, AXES, regime)
    normed = _normed_by_hand(run.inputs)
    scales = _scales_by_hand(normed)
    np.testing.assert_allclose(run.outputs["block_scale"].exact, scales, rtol=1e-15)
    codes = [
        [nearest(e4m3_magnitudes(), v / float(np.float32(row[i // 128]))) for i, v in enumerate(h)]
        for h, row in zip(normed, scales, strict=True)
    ]
    np.testing.assert_array_equal(decode(run.outputs["out"].rounded), codes)


@pytest.mark.parametrize("name", [BLOCK_QUANT, TENSOR_QUANT, PLAIN])
@pytest.mark.parametrize("regime", REGIMES)
def test_the_residual_is_the_fp32_sum_rounded_once(name: str, regime: str) -> None:
    run = draw(name, AXES, regime)
    total = run.inputs["input"].astype(np.float32) + run.inputs["residual"].astype(np.float32)
    by_hand = [[nearest(bf16_magnitudes(), v) for v in row] for row in total.tolist()]
    np.testing.assert_array_equal(decode(run.outputs["residual"].rounded), by_hand)
    assert run.outputs["residual"].bit_exact


def test_rounding_through_fp32_never_moves_the_sum_of_two_bf16_values() -> None:
    rng = np.random.default_rng(7)
    x, residual = (
        np.ldexp(rng.integers(128, 256, (64, 512)), rng.integers(-30, 30, (64, 512))) * sign
        for sign in (1, rng.choice([-1, 1], (64, 512)))
    )
    through_fp32 = round_to_bf16(x.astype(np.float32) + residual.astype(np.float32))
    rounded = expect(PLAIN, _rows(x, residual))["residual"].rounded
    assert rounded.tobytes() == through_fp32.tobytes()


def test_scale_of_row_b_and_block_k_lies_at_k_times_padded_rows_plus_b() -> None:
    scale = draw(BLOCK_QUANT, AXES).outputs["block_scale"]
    assert scale.rounded.shape == (3, 8)
    assert scale.logical_offsets is not None
    for b in range(5):
        for k in range(3):
            assert scale.logical_offsets[b, k] == k * 8 + b
            assert scale.rounded[k, b] == np.float32(scale.exact[b, k])


def test_padding_columns_of_the_scales_must_not_be_written() -> None:
    written = draw(BLOCK_QUANT, AXES).outputs["block_scale"].written
    assert written[:, :5].all()
    assert not written[:, 5:].any()


def test_codes_name_the_scale_that_divides_them() -> None:
    scaled_by = draw(BLOCK_QUANT, AXES).outputs["out"].scaled_by
    assert scaled_by is not None
    assert (scaled_by.tensor, scaled_by.block) == ("block_scale", 128)


def test_a_zero_row_gives_zero_codes_and_the_least_scale() -> None:
    zeros = np.zeros((1, 256))
    outputs = expect(BLOCK_QUANT, _rows(zeros, zeros))
    assert not decode(outputs["out"].rounded).any()
    assert not decode(outputs["normed_out"].rounded).any()
    assert (outputs["block_scale"].rounded[:, 0] == np.float32(1e-4) / np.float32(448)).all()


def test_two_opposite_inputs_give_a_zero_row() -> None:
    x = np.random.default_rng(3).standard_normal((2, 256)).astype(BFLOAT16)
    outputs = expect(PLAIN, _rows(x, -x))
    assert not decode(outputs["input"].rounded).any()
    assert not decode(outputs["residual"].rounded).any()


def test_tiny_blocks_share_the_clamped_scale() -> None:
    scale = draw(BLOCK_QUANT, AXES, "tiny").outputs["block_scale"]
    least = np.float32(1e-4) / np.float32(448)
    assert (scale.rounded[:, :5] >= least).all()
    assert (scale.rounded[:, :5] == least).any()


def test_values_beyond_the_scale_saturate_with_their_sign() -> None:
    x = np.ones((1, 256))
    x[0, :2] = (40.0, -40.0)
    inputs = _rows(x, np.zeros((1, 256)))
    inputs["scale"] = np.array(0.01, dtype=np.float32)
    codes = decode(expect(TENSOR_QUANT, inputs)["out"].rounded)
    assert codes[0, :2].tolist() == [448.0, -448.0]
    assert codes[0, 2] < 448.0


def test_a_weight_multiplies_its_own_column() -> None:
    inputs = _rows(np.ones((2, 256)), np.zeros((2, 256)))
    inputs["weight"] = np.arange(256).astype(BFLOAT16)
    exact = expect(PLAIN, inputs)["input"].exact
    np.testing.assert_allclose(exact, np.broadcast_to(np.arange(256.0), (2, 256)), rtol=1e-6)


def _fp32_normed(run: OracleRun) -> npt.NDArray[np.float32]:
    """Return h * rstd * w in FlashInfer's order, every step rounded to fp32."""
    h = run.inputs["input"].astype(np.float32) + run.inputs["residual"].astype(np.float32)
    mean = np.sum(h * h, axis=1, keepdims=True, dtype=np.float32) / np.float32(h.shape[1])
    rstd = np.float32(1) / np.sqrt(mean + np.float32(1e-6))
    normed = h * rstd * run.inputs["weight"].astype(np.float32)
    assert normed.dtype == np.float32
    return normed.astype(np.float32)


@pytest.mark.parametrize("regime", REGIMES)
def test_flashinfers_order_in_fp32_passes_the_half_gate(regime: str) -> None:
    run = draw(PLAIN, {"B": 16, "H": 4096}, regime)
    got = round_to_bf16(_fp32_normed(run))
    assert l2_ratio(got, run.outputs["input"]) < 1.9
    assert worst_row_l2_ratio(got, run.outputs["input"]) < 2.1
    assert worst_bf16_ulps(got, run.outputs["input"]) <= 2


@pytest.mark.parametrize("regime", REGIMES)
def test_flashinfers_order_in_fp32_passes_the_gate_of_one_scale(regime: str) -> None:
    run = draw(TENSOR_QUANT, {"B": 16, "H": 4096}, regime)
    inverse = np.float32(1) / run.inputs["scale"]
    got = round_to_e4m3(np.clip(_fp32_normed(run) * inverse, -448, 448))
    assert not refused_codes(got, run.outputs["out"].exact, 2.0**-18).any()


@pytest.mark.parametrize("regime", REGIMES)
def test_flashinfers_order_in_fp32_passes_the_gate_of_block_scales(regime: str) -> None:
    run = draw(BLOCK_QUANT, {"B": 16, "H": 4096}, regime)
    rounded = round_to_bf16(_fp32_normed(run)).astype(np.float32).reshape(16, 32, 128)
    amax = np.maximum(np.abs(rounded).max(axis=2, keepdims=True), np.float32(1e-4))
    got = round_to_e4m3(rounded * (np.float32(448) / amax)).reshape(16, 4096)
    scale = (amax / np.float32(448)).astype(np.float64)
    np.testing.assert_allclose(scale[:, :, 0], run.outputs["block_scale"].exact, rtol=2.0**-7)
    scaled = (run.outputs["out"].exact.reshape(16, 32, 128) / scale).reshape(16, 4096)
    assert not refused_codes(got, scaled, 2.0**-8).any()


def test_truncated_codes_are_refused_by_the_measure_that_honest_ones_pass() -> None:
    run = draw(TENSOR_QUANT, AXES)
    exact = run.outputs["out"].exact
    truncated = round_to_e4m3(exact * (1 - 2.0**-5))
    assert refused_codes(truncated, exact, 2.0**-8).any()
