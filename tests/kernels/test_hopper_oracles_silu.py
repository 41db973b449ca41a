"""The oracle of silu_and_mul against 50-digit arithmetic, and fp32 within the gates."""

from decimal import Decimal, localcontext
from math import isclose

import numpy as np
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.rounding import decode, round_to_bf16
from support.gates import l2_ratio, worst_bf16_ulps, worst_row_l2_ratio
from support.narrow_values import bf16_magnitudes, nearest
from support.oracle_run import draw, expect

NAME = "silu_and_mul"
AXES = {"B": 3, "H": 64}


def _silu_and_mul_by_hand(gate: float, up: float) -> float:
    """Return gate / (1 + exp(-gate)) * up."""
    with localcontext(prec=50, Emin=-999_999, Emax=999_999):
        exponential = Decimal(-gate).exp() if abs(gate) < 100_000 else Decimal(0)
        if gate <= -100_000:
            return 0.0
        return float(Decimal(gate) / (1 + exponential) * Decimal(up))


def _expected_of(gates: list[float], ups: list[float]) -> list[float]:
    row = np.array([gates + ups]).astype(numpy_dtype("bfloat16"))
    return decode(expect(NAME, {"input": row})["out"].rounded).ravel().tolist()


@pytest.mark.parametrize("regime", REGIMES)
def test_results_are_those_of_fifty_digit_arithmetic(regime: str) -> None:
    run = draw(NAME, AXES, regime)
    for row in range(3):
        values = decode(run.inputs["input"][row]).tolist()
        for column in range(64):
            by_hand = _silu_and_mul_by_hand(values[column], values[64 + column])
            exact = float(run.outputs["out"].exact[row, column])
            assert isclose(exact, by_hand, rel_tol=1e-12, abs_tol=1e-60)
            rounded = float(run.outputs["out"].rounded[row, column])
            assert rounded == nearest(bf16_magnitudes(), by_hand)


def test_the_first_half_of_a_row_is_the_gate() -> None:
    assert _expected_of([1000.0, 0.0], [2.0, 3.0]) == [2000.0, 0.0]
    assert _expected_of([2.0, 3.0], [1000.0, 0.0]) == [1760.0, 0.0]


def test_gates_that_overflow_the_exponential_give_zero_or_the_gate() -> None:
    assert _expected_of([1.0e6, -1.0e6], [1.0, 1.0]) == [999424.0, 0.0]


@pytest.mark.parametrize("regime", REGIMES)
def test_no_gate_lies_where_results_would_leave_two_to_the_minus_fifty(regime: str) -> None:
    gates = decode(draw(NAME, {"B": 8, "H": 1024}, regime).inputs["input"])[:, :1024]
    assert not ((gates > -256) & (gates < -24)).any()


def test_huge_gates_of_both_signs_are_drawn() -> None:
    gates = decode(draw(NAME, AXES, "huge").inputs["input"])[:, :64]
    assert (gates > 1000).any()
    assert (gates < -1000).any()


@pytest.mark.parametrize("regime", REGIMES)
def test_flashinfers_order_in_fp32_passes_the_gates(regime: str) -> None:
    run = draw(NAME, {"B": 32, "H": 1024}, regime)
    x = run.inputs["input"].astype(np.float32)
    gate, up = x[:, :1024], x[:, 1024:]
    with np.errstate(over="ignore"):  # exp(-gate) is infinite for large negative gates: silu is 0
        got = round_to_bf16(gate / (np.float32(1) + np.exp(-gate)) * up)
    assert l2_ratio(got, run.outputs["out"]) < 1.9
    assert worst_row_l2_ratio(got, run.outputs["out"]) < 2.1
    assert worst_bf16_ulps(got, run.outputs["out"]) <= 2
