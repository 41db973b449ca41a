"""The oracle of merge_state: 60-digit arithmetic, empty states, and fp32 within the gates."""

from dataclasses import replace
from decimal import Decimal, localcontext
from math import isclose

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import Expected
from kopt.kernels.rounding import decode, round_to_bf16
from support.gates import l2_ratio, worst_bf16_ulps, worst_row_l2_ratio
from support.narrow_values import bf16_magnitudes, nearest
from support.oracle_run import Inputs, draw, expect

NAME = "merge_state"
AXES = {"N": 5, "H": 3, "D": 16}
EMPTY = float("-inf")


def _weights_by_hand(s_a: float, s_b: float) -> tuple[Decimal, Decimal, float]:
    """Return both shares and the merged score; shares 0 and score -inf for two empty states."""
    with localcontext(prec=60, Emin=-9999, Emax=9999):
        terms = [Decimal(0) if s == EMPTY else Decimal(2) ** Decimal(s) for s in (s_a, s_b)]
        total = terms[0] + terms[1]
        if total == 0:
            return Decimal(0), Decimal(0), EMPTY
        score = total.ln() / Decimal(2).ln()
        return terms[0] / total, terms[1] / total, float(score)


def _one_pair(s_a: float, s_b: float) -> Inputs:
    bfloat16 = numpy_dtype("bfloat16")
    return {
        "v_a": np.array([[[1.0, 2.0, 3.0]]]).astype(bfloat16),
        "s_a": np.array([[s_a]], dtype=np.float32),
        "v_b": np.array([[[5.0, -2.0, 7.0]]]).astype(bfloat16),
        "s_b": np.array([[s_b]], dtype=np.float32),
    }


def _merged(inputs: Inputs) -> tuple[list[float], float]:
    outputs = expect(NAME, inputs)
    merged, score = outputs["v_merged"].rounded, outputs["s_merged"].rounded
    return decode(merged).ravel().tolist(), float(score.ravel()[0])


@pytest.mark.parametrize("regime", REGIMES)
def test_vectors_and_scores_are_those_of_sixty_digit_arithmetic(regime: str) -> None:
    run = draw(NAME, AXES, regime)
    merged, score = run.outputs["v_merged"], run.outputs["s_merged"]
    assert score.slack is not None
    for n in range(5):
        for h in range(3):
            s_a, s_b = (float(run.inputs[name][n, h]) for name in ("s_a", "s_b"))
            share_a, share_b, by_hand = _weights_by_hand(s_a, s_b)
            got, allowed = float(score.exact[n, h]), float(score.slack[n, h]) * 2.0**-30
            assert got == by_hand or abs(got - by_hand) <= allowed
            assert score.rounded[n, h] == np.float32(score.exact[n, h])
            for d in range(16):
                a, b = (Decimal(float(run.inputs[name][n, h, d])) for name in ("v_a", "v_b"))
                exact = float(a * share_a + b * share_b)
                assert isclose(merged.exact[n, h, d], exact, rel_tol=1e-9)
                assert float(merged.rounded[n, h, d]) == nearest(bf16_magnitudes(), exact)


def test_equal_scores_give_the_mean_and_one_more_bit() -> None:
    assert _merged(_one_pair(3.0, 3.0)) == ([3.0, 0.0, 5.0], 4.0)


@pytest.mark.parametrize("score", [-1000.0, 0.0, 1000.0])
def test_an_empty_state_leaves_the_other_one_as_it_is(score: float) -> None:
    assert _merged(_one_pair(EMPTY, score)) == ([5.0, -2.0, 7.0], score)
    assert _merged(_one_pair(score, EMPTY)) == ([1.0, 2.0, 3.0], score)


def test_two_empty_states_give_zero_and_minus_infinity() -> None:
    assert _merged(_one_pair(EMPTY, EMPTY)) == ([0.0, 0.0, 0.0], EMPTY)


def test_states_may_change_places() -> None:
    inputs = draw(NAME, AXES, "mixed").inputs
    swapped = {name: inputs[name[:2] + {"a": "b", "b": "a"}[name[2]]] for name in inputs}
    for name, output in expect(NAME, inputs).items():
        np.testing.assert_allclose(output.exact, expect(NAME, swapped)[name].exact, rtol=1e-12)


def test_inputs_hold_pairs_with_none_one_and_two_empty_states() -> None:
    run = draw(NAME, {"N": 8, "H": 64, "D": 16}, "zero_blocks")
    empty = np.isneginf(run.inputs["s_a"]).astype(int) + np.isneginf(run.inputs["s_b"])
    assert set(empty.ravel().tolist()) == {0, 1, 2}


@pytest.mark.parametrize("seed", range(5))
def test_even_the_smallest_draw_holds_two_empty_states(seed: int) -> None:
    run = draw(NAME, {"N": 1, "H": 1, "D": 16}, "zero_blocks", seed)
    assert np.isneginf(run.outputs["s_merged"].rounded).all()


def test_vectors_of_empty_states_are_not_zero() -> None:
    run = draw(NAME, {"N": 32, "H": 4, "D": 16}, "zero_blocks")
    assert decode(run.inputs["v_a"])[np.isneginf(run.inputs["s_a"])].any()


def test_scores_beyond_the_range_of_exp2_are_drawn() -> None:
    for regime, sign in (("huge", 1), ("tiny", -1)):
        assert (sign * draw(NAME, AXES, regime).inputs["s_a"] > 500).all()


def _fp32_merge(inputs: Inputs) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return vectors and scores in FlashInfer's order, every step rounded to fp32."""
    s_a, s_b = inputs["s_a"], inputs["s_b"]
    larger = np.maximum(s_a, s_b)
    with np.errstate(invalid="ignore", divide="ignore"):  # -inf - -inf, log2(0): dropped below
        weight_a, weight_b = (np.nan_to_num(np.exp2(s - larger)) for s in (s_a, s_b))
        total = weight_a + weight_b
        share_a, share_b = (np.where(total > 0, w / total, 0) for w in (weight_a, weight_b))
        score = np.log2(total) + larger
    v_a, v_b = inputs["v_a"].astype(np.float32), inputs["v_b"].astype(np.float32)
    merged = v_a * share_a[..., None].astype(np.float32) + v_b * share_b[..., None]
    return merged.astype(np.float32), score.astype(np.float32)


@pytest.mark.parametrize("regime", REGIMES)
def test_flashinfers_order_in_fp32_passes_the_gates(regime: str) -> None:
    run = draw(NAME, {"N": 64, "H": 16, "D": 128}, regime)
    merged, score = _fp32_merge(run.inputs)
    got, output = round_to_bf16(merged), run.outputs["v_merged"]
    assert l2_ratio(got, output) < 1.9
    rows = Expected(output.exact.reshape(64, -1), output.rounded.reshape(64, -1), output.written)
    assert worst_row_l2_ratio(got.reshape(64, -1), rows) < 2.1
    assert worst_bf16_ulps(got, output) <= 2
    expected = run.outputs["s_merged"]
    assert expected.slack is not None
    empty = np.isneginf(expected.exact)
    np.testing.assert_array_equal(np.isneginf(score), empty)
    excess = np.abs(score[~empty] - expected.exact[~empty]) - expected.slack[~empty]
    assert excess.max() <= 0


def test_slack_covers_what_fp32_loses_where_both_vectors_cancel() -> None:
    inputs = _one_pair(2.0**-20, 0.0)
    inputs["v_b"] = -inputs["v_a"]
    got, output = round_to_bf16(_fp32_merge(inputs)[0]), expect(NAME, inputs)["v_merged"]
    assert worst_bf16_ulps(got, output) <= 2
    assert worst_bf16_ulps(got, replace(output, slack=None)) > 2
