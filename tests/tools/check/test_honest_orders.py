"""Honest kernels are accepted: other rounding orders, approximations, signed zeros, ties."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.nvfp4 import quantize_blocks
from kopt.kernels.oracle import load_oracle, load_steps
from kopt.kernels.rounding import decode, pack_e2m1, round_to_bf16, round_to_e4m3
from kopt.tools.check.accuracy import measure_accuracy
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judge import judge
from kopt.tools.check.reference import make_reference
from support.oracle_run import problems, workload_of
from support.synthetic_check import Checked, checked, synthetic_problem

SMALL_AXES = {
    "add_rmsnorm_fp4quant": {"B": 5, "H": 256},
    "add_rmsnorm_fp4quant_sf128x4": {"B": 5, "H": 256},
    "nvfp4_quantize": {"M": 5, "K": 256},
    "nvfp4_quantize_linear": {"M": 5, "K": 256},
    "silu_mul_fp4quant": {"B": 3, "M": 5, "K": 256},
    "silu_mul_fp4quant_linear": {"B": 3, "M": 5, "K": 256},
    "gemm_bf16": {"M": 5, "N": 9, "K": 256},
    "attention_decode": {"B": 2, "H": 3, "G": 2, "N": 6, "P": 16},
    "attention_prefill": {"I": 3, "H": 3, "G": 2, "N": 20},
    "gemm_fp8_block_scaled": {"M": 5, "N": 9, "K": 256},
    "fused_add_rmsnorm_fp8_block_quant": {"B": 5, "H": 512},
    "fused_add_rmsnorm_quant": {"B": 5, "H": 256},
    "fused_add_rmsnorm": {"B": 5, "H": 256},
    "silu_and_mul": {"B": 5, "H": 256},
    "rope_quantize_fp8": {"N": 5, "H": 2, "R": 64, "C": 128, "P": 16},
    "merge_state": {"N": 5, "H": 2, "D": 128},
}


def _values(case: Checked) -> npt.NDArray[np.float64]:
    return decode(case.data.inputs["x"]) * 1.3


def _requantize(case: Checked, y: npt.NDArray[np.float64]) -> None:
    """Store what a kernel gives that computed `y` instead of the exact values."""
    amax = np.abs(_values(case)).max()
    quantized = quantize_blocks(y, np.asarray(448 * 6 / amax))
    case.outputs["codes"] = quantized.packed
    case.outputs["block_scale"] = quantized.scales
    case.outputs["y_fp8"] = round_to_e4m3(y)
    case.outputs["y_bf16"] = round_to_bf16(y)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_correctly_rounded_result_passes(tmp_path: Path, regime: str) -> None:
    assert checked(synthetic_problem(tmp_path), regime).judge().finding is None


@pytest.mark.parametrize("regime", REGIMES)
def test_values_rounded_to_bf16_before_quantisation_pass(tmp_path: Path, regime: str) -> None:
    case = checked(synthetic_problem(tmp_path, ((32, 256),)), regime)
    before = case.outputs["codes"].copy()
    _requantize(case, decode(round_to_bf16(_values(case))))
    assert case.judge().finding is None
    assert np.any(case.outputs["codes"] != before)


@pytest.mark.parametrize("regime", REGIMES)
def test_values_rounded_to_bf16_twice_on_the_way_pass(tmp_path: Path, regime: str) -> None:
    case = checked(synthetic_problem(tmp_path, ((32, 256),)), regime)
    half_way = decode(round_to_bf16(_values(case) * 0.7))
    _requantize(case, decode(round_to_bf16(half_way / 0.7 / 1.1)) * 1.1)
    assert case.judge().finding is None


@pytest.mark.parametrize("regime", REGIMES)
def test_approximate_reciprocals_pass(tmp_path: Path, regime: str) -> None:
    case = checked(synthetic_problem(tmp_path, ((32, 256),)), regime)
    noise = np.random.default_rng(5).uniform(-1e-7, 1e-7, (32, 256))
    _requantize(case, _values(case) * (1 + noise))
    assert case.judge().finding is None


def test_a_zero_code_of_either_sign_passes(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path), "mixed")
    codes = case.outputs["codes"]
    low_is_zero = (codes & 0x7) == 0
    assert low_is_zero.any()
    codes[low_is_zero] ^= 0x8
    assert case.judge().finding is None


def test_any_code_passes_under_a_zero_scale(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path), "zero_blocks")
    zero = np.repeat(decode(case.outputs["block_scale"]) == 0, 8, axis=1)
    assert zero.any()
    case.outputs["codes"][zero] = 0x77
    assert case.judge().finding is None


def test_an_honest_last_bit_passes_where_correct_rounding_has_no_error(tmp_path: Path) -> None:
    problem = synthetic_problem(tmp_path)
    oracle = (tmp_path / "oracle.py").read_text()
    (tmp_path / "oracle.py").write_text(oracle.replace("x * 1.3", "x * 2.0"))
    case = checked(problem)
    assert np.array_equal(decode(case.outputs["y_bf16"]), decode(case.data.inputs["x"]) * 2)
    bits = case.outputs["y_bf16"].view(np.uint16)
    bits[:, ::5] += 1
    assert case.judge().finding is None


def test_one_dominating_value_that_is_one_step_off_passes(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path), "outliers")
    y = np.abs(_values(case))
    bits = case.outputs["y_bf16"].view(np.uint16)
    bits[np.arange(8), y.argmax(axis=1)] += 1
    assert case.judge().finding is None


def test_either_neighbour_of_an_exact_midpoint_passes(tmp_path: Path) -> None:
    problem = synthetic_problem(tmp_path, ((1, 16),))
    oracle = (tmp_path / "oracle.py").read_text()
    (tmp_path / "oracle.py").write_text(oracle.replace("* 1.3", "* 0.0 + TIES") + TIES)
    for code in (2, 3):
        case = checked(problem)
        case.outputs["codes"][0, 0] = pack_e2m1(np.array([code, 7], dtype=np.uint8))[0]
        assert case.judge().finding is None


TIES = "\n\nTIES = np.array([[1.25, 6.0] + [0.0] * 14])\n"


def test_rounding_of_the_last_row_sum_in_float32_passes(tmp_path: Path) -> None:
    case = checked(synthetic_problem(tmp_path, ((32, 256),)))
    sums = _values(case).astype(np.float32).cumsum(axis=1, dtype=np.float32)[:, -1]
    case.outputs["total"][:-1] = sums[:-1]
    assert case.judge().finding is None


@pytest.mark.parametrize("off", [2.0**-10, -(2.0**-10)])
def test_rows_whose_factor_is_almost_a_power_of_two_may_round_back(off: float) -> None:
    problem = problems()["fused_add_rmsnorm"]
    workload = workload_of(problem, {"B": 8, "H": 4096})
    oracle, steps = load_oracle(problem), load_steps(problem)
    assert steps is not None
    inputs = dict(oracle.make_inputs(workload, np.random.default_rng(7), "normal"))
    inputs["residual"] = np.zeros_like(inputs["residual"])
    inputs["input"][1:] = inputs["input"][0]
    mean_square = float(np.mean(np.square(decode(inputs["input"][0]))))
    scalars = {"eps": (1 / (4 * (1 + off))) ** -2 - mean_square}  # rstd is 1/4, and a little more
    expected = oracle.expected(inputs, scalars)
    references = {name: make_reference(problem, name, one) for name, one in expected.items()}
    in_steps = dict(steps.expected_in_steps(inputs, scalars))
    outputs = {name: one.rounded for name, one in expected.items()}
    outputs["input"] = round_to_bf16(in_steps["input"].one)
    unexplained = judge(CaseData(inputs, references), outputs, 0xFF).finding
    assert unexplained is not None
    assert unexplained.gate == "bias"
    data = CaseData(inputs, references, lambda: in_steps)
    assert judge(data, outputs, 0xFF).finding is None
    outputs["input"] = round_to_bf16(in_steps["input"].one * (1 - 2 * off))
    assert judge(data, outputs, 0xFF).finding is not None


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", SMALL_AXES)
def test_every_packaged_oracle_passes_its_own_gates(name: str, regime: str) -> None:
    problem = problems()[name]
    workload = workload_of(problem, SMALL_AXES[name])
    oracle = load_oracle(problem)
    inputs = oracle.make_inputs(workload, np.random.default_rng(7), regime)
    scalars = {scalar.name: scalar.value for scalar in problem.scalars}
    expected = oracle.expected(inputs, scalars)
    data = CaseData(
        inputs,
        {output: make_reference(problem, output, entry) for output, entry in expected.items()},
    )
    outputs: dict[str, npt.NDArray[Any]] = {}
    for output, entry in expected.items():
        size = entry.rounded.itemsize
        buffer = inputs.get(output, np.full(entry.rounded.shape, -1, f"i{size}"))
        buffer = buffer.view(f"u{size}").copy()
        buffer[entry.written] = entry.rounded.view(f"u{size}")[entry.written]
        outputs[output] = buffer.view(entry.rounded.dtype)
    judgement = judge(data, outputs, 0xFF)
    assert judgement.finding is None
    for accuracy in measure_accuracy(judgement.outputs):
        assert accuracy.mismatch_fraction == 0
        assert accuracy.within_fixed_limits


def test_every_packaged_problem_is_among_the_small_ones() -> None:
    assert set(SMALL_AXES) == set(problems())
