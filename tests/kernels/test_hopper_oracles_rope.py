"""The oracle of rope_quantize_fp8: exact fractions, and an fp32 emulation within the gate."""

from fractions import Fraction

import numpy as np
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.rounding import decode, round_to_e4m3
from support.gates import refused_codes
from support.narrow_values import e4m3_magnitudes, nearest
from support.oracle_run import Inputs, draw, expect, problems

NAME = "rope_quantize_fp8"
AXES = {"N": 5, "H": 3}
SCALES = {"q": Fraction(5, 4), "k": Fraction(3, 4)}


def _rotated_by_hand(row: list[float], angles: list[float], scale: Fraction) -> list[float]:
    """Return the rotated row times `scale`; column i is paired with column i + 32."""
    x = [Fraction(value) for value in row]
    cosine, sine = ([Fraction(value) for value in part] for part in (angles[:32], angles[32:]))
    first = [x[i] * cosine[i] - x[i + 32] * sine[i] for i in range(32)]
    second = [x[i + 32] * cosine[i] + x[i] * sine[i] for i in range(32)]
    return [float(value * scale) for value in first + second]


def _quarter_turn() -> Inputs:
    """Return one token and one head whose angles are all 90 degrees."""
    bfloat16 = numpy_dtype("bfloat16")
    ramp = np.arange(1, 65).astype(bfloat16)
    nope = np.arange(512).astype(bfloat16)
    return {
        "q_rope": ramp.reshape(1, 1, 64),
        "k_rope": ramp.reshape(1, 64),
        "q_nope": nope.reshape(1, 1, 512),
        "k_nope": nope.reshape(1, 512),
        "cos_sin_cache": np.repeat([[0.0, 1.0]], 32, axis=1).astype(np.float32),
        "pos_ids": np.zeros(1, dtype=np.int32),
    }


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("side", ["q", "k"])
def test_rotated_columns_are_those_of_exact_fractions(side: str, regime: str) -> None:
    run = draw(NAME, AXES, regime)
    output = run.outputs[f"{side}_rope_out"]
    tokens = decode(run.inputs[f"{side}_rope"]).reshape(5, -1, 64)
    exact = output.exact.reshape(tokens.shape)
    codes = decode(output.rounded).reshape(tokens.shape)
    assert output.slack is not None
    allowed = output.slack.reshape(tokens.shape) * 2.0**-30
    for n, position in enumerate(run.inputs["pos_ids"].tolist()):
        angles = run.inputs["cos_sin_cache"][position].astype(float).tolist()
        for head, row in enumerate(tokens[n].tolist()):
            by_hand = _rotated_by_hand(row, angles, SCALES[side])
            assert (np.abs(exact[n, head] - by_hand) <= allowed[n, head]).all()
            assert codes[n, head].tolist() == [nearest(e4m3_magnitudes(), v) for v in by_hand]


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("side", ["q", "k"])
def test_other_columns_are_only_scaled(side: str, regime: str) -> None:
    run = draw(NAME, AXES, regime)
    scaled = decode(run.inputs[f"{side}_nope"]) * float(SCALES[side])
    codes = [nearest(e4m3_magnitudes(), value) for value in scaled.ravel().tolist()]
    output = run.outputs[f"{side}_nope_out"]
    assert decode(output.rounded).ravel().tolist() == codes
    np.testing.assert_array_equal(output.exact, scaled)


def test_a_quarter_turn_moves_the_first_half_onto_the_second() -> None:
    exact = expect(NAME, _quarter_turn())["q_rope_out"].exact.ravel() / 1.25
    assert exact[:32].tolist() == [-float(value) for value in range(33, 65)]
    assert exact[32:].tolist() == [float(value) for value in range(1, 33)]


def test_queries_and_keys_have_scales_of_their_own() -> None:
    outputs = expect(NAME, _quarter_turn())
    query, key = outputs["q_nope_out"].exact.ravel(), outputs["k_nope_out"].exact.ravel()
    assert (query[4], key[4]) == (5.0, 3.0)
    assert len({scalar.value for scalar in problems()[NAME].scalars}) == 2


def test_values_beyond_448_saturate() -> None:
    codes = decode(expect(NAME, _quarter_turn())["q_nope_out"].rounded).ravel()
    assert codes[-1] == 448.0  # 511 * 1.25


def test_each_row_of_the_cache_is_needed_once() -> None:
    run = draw(NAME, {"N": 64, "H": 1})
    assert sorted(run.inputs["pos_ids"].tolist()) == list(range(64))
    assert run.inputs["pos_ids"].tolist() != list(range(64))


def test_the_cache_holds_cosines_then_sines_of_growing_positions() -> None:
    cache = draw(NAME, {"N": 8, "H": 1}).inputs["cos_sin_cache"].astype(np.float64)
    cosine, sine = cache[:, :32], cache[:, 32:]
    np.testing.assert_allclose(cosine**2 + sine**2, 1.0, rtol=1e-6)
    step = np.diff(np.unwrap(np.arctan2(sine, cosine), axis=0), axis=0)
    frequencies = 10_000.0 ** (-np.arange(32) / 32)
    np.testing.assert_allclose(step, np.broadcast_to(frequencies, (7, 32)), atol=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
def test_flashinfers_order_in_fp32_passes_the_gate(regime: str) -> None:
    run = draw(NAME, {"N": 32, "H": 16}, regime)
    angles = run.inputs["cos_sin_cache"][run.inputs["pos_ids"]][:, None, :]
    x = run.inputs["q_rope"].astype(np.float32)
    first, second = x[..., :32], x[..., 32:]
    cosine, sine = angles[..., :32], angles[..., 32:]
    rotated = np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)
    got = round_to_e4m3(rotated * np.float32(1.25))
    output = run.outputs["q_rope_out"]
    assert output.slack is not None
    low, high = output.exact - output.slack, output.exact + output.slack
    assert not (refused_codes(got, low, 0.0) & refused_codes(got, high, 0.0)).any()
