"""The oracles of the NVFP4 problems against 50-digit arithmetic, and their inputs."""

from decimal import Decimal, localcontext
from math import isclose
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.problem import storage_shape
from kopt.kernels.rounding import decode, round_to_bf16
from support.oracle_run import OracleRun, draw, expect, problems

SMALL = {
    "add_rmsnorm_fp4quant": {"B": 33, "H": 528},
    "add_rmsnorm_fp4quant_sf128x4": {"B": 33, "H": 528},
    "nvfp4_quantize": {"M": 33, "K": 528},
    "nvfp4_quantize_linear": {"M": 33, "K": 528},
    "silu_mul_fp4quant": {"B": 4, "M": 33, "K": 528},
    "silu_mul_fp4quant_linear": {"B": 4, "M": 33, "K": 528},
}
NAMES = list(SMALL)
CASES = [(name, regime) for name in NAMES for regime in REGIMES]
TWINS = [
    ("add_rmsnorm_fp4quant", "add_rmsnorm_fp4quant_sf128x4"),
    ("nvfp4_quantize_linear", "nvfp4_quantize"),
    ("silu_mul_fp4quant_linear", "silu_mul_fp4quant"),
]
BF16 = numpy_dtype("bfloat16")


def _run(name: str, regime: str, seed: int = 1) -> OracleRun:
    return draw(name, SMALL[name], regime, seed)


def _written_scales(run: OracleRun) -> npt.NDArray[np.floating[Any]]:
    """Return the exact scales of the rows that are computed."""
    scales = run.outputs["block_scale"]
    if scales.logical_offsets is None:
        return scales.exact[scales.written]
    return scales.exact[scales.written.ravel()[scales.logical_offsets]]


@pytest.mark.parametrize(
    ("name", "kernel_ids"),
    [
        ("add_rmsnorm_fp4quant", ["b128xh2048", "b128xh4096", "b128xh8192"]),
        ("add_rmsnorm_fp4quant_sf128x4", ["b128xh2048", "b128xh4096", "b128xh8192"]),
        ("nvfp4_quantize", ["m128xk14336"]),
        ("nvfp4_quantize_linear", ["m128xk14336"]),
        ("silu_mul_fp4quant", ["b8xm256xk7168"]),
        ("silu_mul_fp4quant_linear", ["b8xm256xk7168"]),
    ],
)
def test_kernel_ids_are_those_of_the_contract(name: str, kernel_ids: list[str]) -> None:
    assert list(problems()[name].kernel_ids) == [f"{name}_{workload}" for workload in kernel_ids]


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_arrays_have_the_shapes_and_dtypes_of_the_problem(name: str, regime: str) -> None:
    run = _run(name, regime)
    for tensor in run.problem.tensors:
        shape, dtype = storage_shape(tensor, run.workload.axes), numpy_dtype(tensor.dtype)
        if tensor.role != "out":
            assert (run.inputs[tensor.name].shape, run.inputs[tensor.name].dtype) == (shape, dtype)
        if tensor.role != "in":
            expected = run.outputs[tensor.name]
            assert (expected.rounded.shape, expected.rounded.dtype) == (shape, dtype)
            assert expected.written.shape == shape


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_magnitudes_stay_within_two_to_the_fifty(name: str, regime: str) -> None:
    inputs = _run(name, regime).inputs
    for tensor in set(inputs) - {"mask"}:
        values = np.abs(decode(inputs[tensor]))
        assert np.isfinite(values).all()
        assert values.max() < 2.0**50
        # A few normal values lie near 0; what counts is what most of them are.
        assert np.median(values[values > 0]) > 2.0**-50


@pytest.mark.parametrize("name", NAMES)
def test_inputs_depend_on_the_seed_alone(name: str) -> None:
    first, again, other = (_run(name, "mixed", seed).inputs["input"] for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_scales_neither_all_saturate_nor_all_vanish(name: str, regime: str) -> None:
    scales = _written_scales(_run(name, regime))
    assert np.mean((scales > 2.0**-9) & (scales < 448)) > 0.3


@pytest.mark.parametrize("name", NAMES)
def test_normal_scales_end_at_the_largest(name: str) -> None:
    scales = _written_scales(_run(name, "normal"))
    assert isclose(scales.max(), 448, rel_tol=1e-6)
    assert np.mean(scales > 447) < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_some_huge_blocks_saturate(name: str) -> None:
    assert np.mean(_written_scales(_run(name, "huge")) == 448) > 0.001


@pytest.mark.parametrize("name", NAMES)
def test_some_mixed_blocks_have_subnormal_scales_and_some_none(name: str) -> None:
    scales = _written_scales(_run(name, "mixed"))
    assert np.mean((scales > 2.0**-9) & (scales < 2.0**-6)) > 0.05
    assert np.mean((scales > 0) & (scales < 2.0**-10)) > 0.05


@pytest.mark.parametrize("name", NAMES)
def test_zero_blocks_have_zero_scales_and_codes(name: str) -> None:
    outputs = _run(name, "zero_blocks").outputs
    is_zero = outputs["block_scale"].exact == 0
    assert np.mean(is_zero) > 0.05
    codes = outputs["out"].rounded.reshape(*is_zero.shape, 8)
    assert codes[is_zero].max() == 0


@pytest.mark.parametrize(("row_major", "tiled"), TWINS)
@pytest.mark.parametrize("regime", REGIMES)
def test_the_layouts_of_one_operator_hold_the_same_values(
    row_major: str, tiled: str, regime: str
) -> None:
    inputs = _run(row_major, regime).inputs
    plain, other = expect(row_major, inputs), expect(tiled, inputs)
    assert (plain["out"].rounded == other["out"].rounded).all()
    offsets = other["block_scale"].logical_offsets
    assert offsets is not None
    permuted = other["block_scale"].rounded.ravel()[offsets]
    assert (permuted.view(np.uint8) == plain["block_scale"].rounded.view(np.uint8)).all()


@pytest.mark.parametrize("regime", REGIMES)
def test_normed_rows_are_those_of_fifty_digit_arithmetic(regime: str) -> None:
    run = draw("add_rmsnorm_fp4quant", {"B": 3, "H": 48}, regime)
    values = {name: decode(run.inputs[name]) for name in ("input", "residual", "weight")}
    exact = run.outputs["out"].exact
    with localcontext(prec=50):
        eps = Decimal(float(np.float32(1e-6)))
        scale = Decimal(run.inputs["global_scale"].item())
        for row in range(3):
            pairs = zip(values["input"][row], values["residual"][row], strict=True)
            h = [Decimal(float(x)) + Decimal(float(r)) for x, r in pairs]
            rms = (sum((v * v for v in h), Decimal(0)) / len(h) + eps).sqrt()
            for column, weight in enumerate(values["weight"].tolist()):
                by_hand = float(h[column] / rms * Decimal(weight) * scale)
                assert isclose(float(exact[row, column]), by_hand, rel_tol=1e-13)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_residual_is_the_exact_sum_rounded_once(regime: str) -> None:
    run = _run("add_rmsnorm_fp4quant", regime)
    residual = run.outputs["residual"]
    assert residual.bit_exact
    total = decode(run.inputs["input"]) + decode(run.inputs["residual"])
    assert (residual.exact == total).all()
    # The float32 sum on the way has more than twice bf16's bits: it cannot change the result.
    assert (residual.rounded.view(np.uint16) == round_to_bf16(total).view(np.uint16)).all()


@pytest.mark.parametrize("regime", REGIMES)
def test_gated_products_are_those_of_fifty_digit_arithmetic(regime: str) -> None:
    run = draw("silu_mul_fp4quant", {"B": 2, "M": 3, "K": 32}, regime)
    exact, inputs = run.outputs["out"].exact, decode(run.inputs["input"])
    with localcontext(prec=50, Emin=-999_999, Emax=999_999):
        for expert in range(2):
            scale = Decimal(float(run.inputs["global_scale"][expert]))
            for row, column in np.ndindex(int(run.inputs["mask"][expert]), 32):
                gate = float(inputs[expert, row, column])
                up = Decimal(float(inputs[expert, row, 32 + column]))
                decay = Decimal(-gate).exp() if gate > -9000 else Decimal("1e4000")
                by_hand = float(Decimal(gate) / (1 + decay) * up * scale)
                found = float(exact[expert, row, column])
                assert isclose(found, by_hand, rel_tol=1e-13, abs_tol=1e-40)


@pytest.mark.parametrize("name", ["silu_mul_fp4quant", "silu_mul_fp4quant_linear"])
def test_only_rows_below_the_mask_are_written(name: str) -> None:
    run = _run(name, "mixed")
    mask = run.inputs["mask"].tolist()
    rows = np.arange(33)[:, None]
    for written, valid_rows in zip(run.outputs["out"].written, mask, strict=True):
        assert (written == (rows < valid_rows)).all()
    scales = run.outputs["block_scale"]
    assert scales.written.reshape(len(mask), -1).sum(axis=1).tolist() == [33 * m for m in mask]


def test_the_mask_is_full_for_normal_inputs_only() -> None:
    assert _run("silu_mul_fp4quant", "normal").inputs["mask"].tolist() == [33] * 4
    masks = [_run("silu_mul_fp4quant", "mixed", seed).inputs["mask"].tolist() for seed in (1, 2, 3)]
    assert all({0, 33} <= set(mask) for mask in masks)
    assert any(0 < rows < 33 for mask in masks for rows in mask)


def test_rows_beyond_the_mask_do_not_count_for_the_global_scale() -> None:
    inputs = _run("silu_mul_fp4quant", "mixed").inputs
    empty = inputs["mask"].tolist().index(0)
    assert inputs["global_scale"][empty] == 1.0
    assert decode(inputs["input"])[empty].any()


def test_every_expert_is_quantised_with_its_own_scale() -> None:
    inputs = _run("silu_mul_fp4quant_linear", "normal").inputs
    factors = np.array([1, 2, 1, 1], dtype=np.float32)
    doubled = {**inputs, "global_scale": inputs["global_scale"] * factors}
    plain, other = (expect("silu_mul_fp4quant_linear", i)["out"].exact for i in (inputs, doubled))
    np.testing.assert_allclose(other, plain * factors.reshape(4, 1, 1), rtol=1e-15)


@pytest.mark.parametrize("name", ["add_rmsnorm_fp4quant", "nvfp4_quantize"])
def test_rows_do_not_depend_on_one_another(name: str) -> None:
    inputs = _run(name, "normal").inputs
    order = np.arange(32, -1, -1)
    turned = {k: v[order] if v.shape[:1] == (33,) else v for k, v in inputs.items()}
    plain, other = expect(name, inputs)["out"], expect(name, turned)["out"]
    assert (plain.rounded[order] == other.rounded).all()


def test_a_row_of_zeros_is_normed_to_zeros() -> None:
    zeros = np.zeros((1, 32), dtype=BF16)
    inputs = {
        "input": zeros,
        "residual": zeros,
        "weight": np.ones(32, dtype=BF16),
        "global_scale": np.array(1.0, dtype=np.float32),
    }
    outputs = expect("add_rmsnorm_fp4quant", inputs)
    assert outputs["out"].rounded.max() == 0
    assert outputs["block_scale"].rounded.view(np.uint8).max() == 0
