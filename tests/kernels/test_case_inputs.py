"""Derived and assorted regimes: what they promise, for packaged problems and for a user's own."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.case_inputs import (
    ASSORTED,
    CASE_REGIMES,
    draw_inputs,
    fill_ignored,
)
from kopt.kernels.derived_regimes import DERIVED_REGIMES
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import Arrays, Expected, Inputs, load_oracle
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.rounding import decode
from support.oracle_run import expect, problems, workload_of
from support.synthetic_check import checked, synthetic_problem

SMALL = {
    "add_rmsnorm_fp4quant": {"B": 24, "H": 256},
    "nvfp4_quantize": {"M": 24, "K": 256},
    "silu_mul_fp4quant_linear": {"B": 9, "M": 6, "K": 256},
    "gemm_bf16": {"M": 24, "N": 24, "K": 256},
    "attention_decode": {"B": 3, "H": 24, "G": 2, "N": 9, "P": 16},
    "attention_prefill": {"I": 4, "H": 24, "G": 2, "N": 40},
    "gemm_fp8_block_scaled": {"M": 22, "N": 24, "K": 256},
    "fused_add_rmsnorm_fp8_block_quant": {"B": 24, "H": 512},
    "fused_add_rmsnorm_quant": {"B": 24, "H": 256},
    "fused_add_rmsnorm": {"B": 24, "H": 2048},
    "silu_and_mul": {"B": 24, "H": 256},
    "rope_quantize_fp8": {"N": 24, "H": 2},
    "merge_state": {"N": 24, "H": 8, "D": 32},
}
NEW = [(name, regime) for name in SMALL for regime in (*DERIVED_REGIMES, ASSORTED)]


def _draw(name: str, regime: str, seed: int = 1) -> Inputs:
    problem = problems()[name]
    rng = np.random.default_rng(seed)
    return draw_inputs(
        problem, load_oracle(problem), workload_of(problem, SMALL[name]), rng, regime
    )


@pytest.mark.parametrize(("name", "regime"), NEW)
def test_inputs_keep_their_shapes_and_dtypes_and_follow_the_seed(name: str, regime: str) -> None:
    normal, first, again, other = (
        _draw(name, "normal"),
        *(_draw(name, regime, seed) for seed in (1, 1, 2)),
    )
    for tensor, array in first.items():
        assert (array.shape, array.dtype) == (normal[tensor].shape, normal[tensor].dtype)
        assert array.tobytes() == again[tensor].tobytes()
    assert any(array.tobytes() != other[tensor].tobytes() for tensor, array in first.items())


@pytest.mark.parametrize(("name", "regime"), NEW)
def test_results_are_numbers_within_two_to_the_fifty(name: str, regime: str) -> None:
    for output in expect(name, _draw(name, regime)).values():
        assert not np.isnan(output.exact).any()
        finite = np.abs(output.exact[np.isfinite(output.exact)])
        assert finite.max() < 2.0**50
        # Codes of huge negative gates are 0, and so is what float32 does not hold: a state
        # without weight beside zeros.
        assert regime == ASSORTED or finite[finite > 2.0**-149].min(initial=1.0) > 2.0**-100


def test_rows_of_channels_have_a_mean_and_weights_both_signs() -> None:
    inputs = _draw("fused_add_rmsnorm", "channels")
    h = decode(inputs["input"]) + decode(inputs["residual"])
    assert (np.square(h.mean(axis=1)) > 0.05 * np.square(h).mean(axis=1)).all()
    assert 0.4 < (decode(inputs["weight"]) < 0).mean() < 0.6
    deviations = h.std(axis=0)
    assert deviations.max() > 8 * deviations.min()


def test_channels_are_no_larger_than_what_the_oracle_draws() -> None:
    drawn, normal = _draw("silu_and_mul", "channels"), _draw("silu_and_mul", "normal")
    assert np.abs(decode(drawn["input"])).max() <= np.abs(decode(normal["input"])).max() * 1.01


def test_mean_squares_at_the_edges_lie_around_eps() -> None:
    inputs = _draw("fused_add_rmsnorm_quant", "edges")
    h = decode(inputs["input"]) + decode(inputs["residual"])
    ratio = np.square(h).mean(axis=1) / 1e-6
    assert (ratio < 1).any() and (ratio > 1).any()
    assert (ratio > 0.9 / 64).all() and (ratio < 70).all()


def test_scores_at_the_edges_are_far_apart_and_states_are_empty() -> None:
    inputs = _draw("merge_state", "edges")
    with np.errstate(invalid="ignore"):
        distance = inputs["s_a"] - inputs["s_b"]
    finite = distance[np.isfinite(distance)]
    assert finite.max() > 128 and finite.min() < -128
    assert np.isneginf(inputs["s_a"]).any()


@pytest.mark.parametrize(
    ("name", "low", "high"), [("silu_and_mul", -40, 20), ("silu_mul_fp4quant_linear", -10, 3)]
)
def test_gates_at_the_edges_reach_both_tails(name: str, low: float, high: float) -> None:
    array = decode(_draw(name, "edges")["input"])
    gates = array[..., : array.shape[-1] // 2]
    assert gates.min() < low and gates.max() > high


def test_angles_at_the_edges_are_those_of_all_positions() -> None:
    table = _draw("rope_quantize_fp8", "edges")["cos_sin_cache"]
    cosine, sine = np.split(table, 2, axis=1)
    np.testing.assert_allclose(cosine**2 + sine**2, 1, atol=1e-6)
    assert (cosine == 1).all(axis=1).any() and (sine == -1).all(axis=1).any()


def test_rows_of_other_operators_differ_in_size() -> None:
    largest = np.abs(decode(_draw("nvfp4_quantize", "edges")["input"])).max(axis=1)
    assert largest.max() > 16 * largest.min()


@pytest.mark.parametrize("regime", ["edges", ASSORTED])
def test_vectors_of_empty_states_are_no_numbers(regime: str) -> None:
    inputs = _draw("merge_state", regime)
    filled = fill_ignored(problems()["merge_state"], inputs, regime)
    is_empty = np.isneginf(inputs["s_a"])
    assert is_empty.any()
    assert not np.isfinite(decode(filled["v_a"])[is_empty]).any()
    assert np.array_equal(filled["v_a"][~is_empty], inputs["v_a"][~is_empty])


def test_masked_rows_are_no_numbers() -> None:
    name = "silu_mul_fp4quant_linear"
    inputs = _draw(name, "edges")
    filled = fill_ignored(problems()[name], inputs, "edges")
    for expert, valid in enumerate(inputs["mask"]):
        assert np.isfinite(decode(filled["input"][expert, :valid])).all()
        assert not np.isfinite(decode(filled["input"][expert, valid:])).any()
    assert (inputs["mask"] < SMALL[name]["M"]).any()


def test_assorted_rows_hold_every_regime() -> None:
    inputs = _draw("fused_add_rmsnorm", ASSORTED)
    size = np.abs(decode(inputs["input"])).max(axis=1)
    assert (size < 2.0**-20).any() and (size > 2.0**38).any()  # tiny, huge
    assert ((size > 2.0**-20) & (size < 0.1)).any()  # edges
    assert ((size > 1) & (size < 10)).any()  # normal


def test_assorted_codes_come_with_their_scales() -> None:
    inputs = _draw("gemm_fp8_block_scaled", ASSORTED)
    x, scales = decode(inputs["x"]), inputs["x_scale"]
    largest = np.abs(x.reshape(22, 2, 128)).max(axis=2) * scales[:, :22].T
    assert (largest < 2.0**-16).all(axis=1).any() and (largest > 2.0**16).any()  # tiny, huge
    assert ((largest > 0.1) & (largest < 10)).all(axis=1).any()  # normal
    assert np.isin(np.abs(x.reshape(22, 2, 128)).max(axis=2), [448, 0]).all()
    assert not scales[:, 22:].any()


def test_assorted_positions_stay_a_permutation() -> None:
    assert sorted(_draw("rope_quantize_fp8", ASSORTED)["pos_ids"].tolist()) == list(range(24))


def test_fewer_rows_than_regimes_are_no_mistake(tmp_path: Path) -> None:
    problem = synthetic_problem(tmp_path, ((3, 64),))
    rng = np.random.default_rng(1)
    oracle = load_oracle(problem)
    assert draw_inputs(problem, oracle, problem.workloads[0], rng, ASSORTED)["x"].shape == (3, 64)


@pytest.mark.parametrize("regime", CASE_REGIMES)
def test_right_outputs_of_a_users_own_problem_pass(tmp_path: Path, regime: str) -> None:
    assert checked(synthetic_problem(tmp_path, ((24, 64),)), regime).judge().finding is None


def test_an_oracle_may_decline_derived_regimes(tmp_path: Path) -> None:
    problem = synthetic_problem(tmp_path)
    path = tmp_path / "oracle.py"
    path.write_text(path.read_text() + '\nDERIVED_REGIMES = ("edges",)\n')
    drawn = [
        draw_inputs(
            problem, load_oracle(problem), problem.workloads[0], np.random.default_rng(1), r
        )
        for r in ("normal", *DERIVED_REGIMES)
    ]
    normal, channels, edges = (inputs["x"].tobytes() for inputs in drawn)
    assert normal == channels != edges


def test_new_regimes_leave_the_places_of_the_old_ones() -> None:
    assert CASE_REGIMES[: len(REGIMES)] == REGIMES


def test_rows_of_all_regimes_meet_weights_of_both_signs() -> None:
    weight = decode(_draw("fused_add_rmsnorm", ASSORTED)["weight"])
    assert 0.4 < (weight < 0).mean() < 0.6


class _Starts:
    """An oracle whose integers lie along an axis that is computed from the rows."""

    def make_inputs(self, workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
        del regime
        rows = workload.axes["R"]
        x = rng.standard_normal((rows, workload.axes["C"])).astype(np.float32)
        return {"x": x, "starts": np.arange(workload.axes["R1"], dtype=np.int32)}

    def expected(self, inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
        del inputs, scalars
        return {}


def test_integers_along_an_axis_computed_from_the_rows_keep_its_length() -> None:
    problem = Problem.model_validate(
        {
            "name": "rows_of_starts",
            "op_type": "other",
            "description": "Rows and where they start.",
            "axes": {"R": None, "C": None, "R1": "R + 1"},
            "tensors": [
                {"name": "x", "role": "in", "dtype": "float32", "shape": ["R", "C"]},
                {"name": "starts", "role": "in", "dtype": "int32", "shape": ["R1"]},
                {"name": "out", "role": "out", "dtype": "float32", "shape": ["R", "C"]},
            ],
            "row_axis": "R",
            "workloads": [{"name": "r64xc8", "axes": {"R": 64, "C": 8, "R1": 65}}],
            "folder": ".",
        }
    )
    rng = np.random.default_rng(1)
    inputs = draw_inputs(problem, _Starts(), problem.workloads[0], rng, ASSORTED)
    assert inputs["starts"].shape == (65,)
