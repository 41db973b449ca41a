from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.case_inputs import fill_ignored
from kopt.kernels.oracle import expected_at, load_oracle
from kopt.kernels.problem import make_workload
from kopt.kernels.problem_loader import load_problem, load_problems
from kopt.tools.check import repeated_rows
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge
from kopt.tools.check.reference import Reference, make_reference
from kopt.tools.check.repeated_rows import load_case

_PROBLEMS = load_problems()
_SMALL = {
    "add_rmsnorm_fp4quant": {"B": 40, "H": 64},
    "add_rmsnorm_fp4quant_sf128x4": {"B": 200, "H": 96},
    "fused_add_rmsnorm": {"B": 40, "H": 64},
    "fused_add_rmsnorm_quant": {"B": 40, "H": 64},
    "merge_state": {"N": 40, "H": 4, "D": 16},
    "nvfp4_quantize": {"M": 300, "K": 48},
    "nvfp4_quantize_linear": {"M": 40, "K": 48},
    "rope_quantize_fp8": {"N": 40, "H": 2},
    "silu_and_mul": {"B": 40, "H": 64},
    "silu_mul_fp4quant": {"B": 20, "M": 130, "K": 48},
    "silu_mul_fp4quant_linear": {"B": 20, "M": 20, "K": 48},
}


def _key(name: str, regime: str = "zero_blocks", **more: int) -> CaseKey:
    problem = _PROBLEMS[name]
    free = {axis for axis, expression in problem.axes.items() if expression is None}
    axes = {axis: value for axis, value in (_SMALL[name] | more).items() if axis in free}
    return CaseKey(problem, make_workload(problem, axes), 5, regime)


@pytest.fixture
def repeats_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows repeat in small cases too, ordinary ones among them."""
    monkeypatch.setattr(repeated_rows, "MEDIUM_BYTES", 0)
    monkeypatch.setattr(repeated_rows, "WHOLE_BYTES", 0)
    monkeypatch.setattr(repeated_rows, "_ROWS_A_REGIME", 1)


@pytest.mark.usefixtures("repeats_all")
@pytest.mark.parametrize("name", _SMALL)
@pytest.mark.parametrize("regime", ["normal", "zero_blocks", "edges", "assorted"])
def test_repeated_results_are_those_of_the_oracle_on_all_rows(name: str, regime: str) -> None:
    key = _key(name, regime)

    data = load_case(key, hidden=True)

    assert data.repeats is not None
    assert _unfilled(key, data), "rows that count for nothing hold what they did"
    inputs = {name: _known(array) for name, array in data.inputs.items()}
    expected = expected_at(
        load_oracle(key.problem), inputs, key.problem.scalar_values(key.workload), key.workload
    )
    for output, entry in expected.items():
        whole, repeated = make_reference(key.problem, output, entry), data.references[output]
        counts = np.ones(whole.bits.shape, np.bool_) if whole.written is None else whole.written
        if name == "merge_state":  # which zero it is depends on what counts for nothing
            counts = counts & (whole.exact != 0)
        assert np.array_equal(repeated.bits[counts], whole.bits[counts])
        assert np.array_equal(repeated.exact, whole.exact)
        assert (repeated.shape, repeated.rows) == (whole.shape, whole.rows)
        assert _equal(repeated.written, whole.written)
        assert _equal(repeated.offsets, whole.offsets)
        assert _equal(repeated.slack, whole.slack)
        places = np.arange(whole.exact.size)
        assert np.array_equal(repeated.unit_at(places), whole.unit_at(places))
        assert _sums(repeated) == pytest.approx(_sums(whole))


def _equal(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def _sums(reference: Reference) -> npt.NDArray[np.float64]:
    noise = reference.noise
    if noise is None:
        return np.zeros(0)
    return np.concatenate([noise.correct_sq, noise.ulp_sq, noise.ulp_max])


def _known(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` with 0 where it holds NaN or infinity: oracles get none of what is ignored."""
    if array.dtype.kind == "i":
        return array
    wide = array.astype(np.float64)
    return np.where(np.isnan(wide) | (wide == np.inf), 0, wide).astype(array.dtype)


def _unfilled(key: CaseKey, data: CaseData) -> bool:
    filled = fill_ignored(key.problem, {k: _known(v) for k, v in data.inputs.items()}, key.regime)
    return all(
        np.array_equal(np.isnan(a.astype(float)), np.isnan(data.inputs[n].astype(float)))
        for n, a in filled.items()
    )


@pytest.mark.usefixtures("repeats_all")
def test_looked_up_places_are_a_permutation_of_the_whole_table() -> None:
    data = load_case(_key("rope_quantize_fp8"), hidden=True)

    assert sorted(data.inputs["pos_ids"].tolist()) == list(range(40))


@pytest.mark.usefixtures("repeats_all")
def test_rows_stand_in_no_order() -> None:
    data = load_case(_key("silu_and_mul"), hidden=True)

    rows = data.inputs["input"].view(np.uint16)
    distances = {
        int(later) - at
        for at, row in enumerate(rows)
        for later in np.flatnonzero((rows == row).all(axis=1))
        if later > at
    }
    assert len(distances) > 8


@pytest.mark.usefixtures("repeats_all")
@pytest.mark.parametrize("row", [0, 17, 39])
def test_a_wrong_element_in_any_copy_is_found_where_it_is(row: int) -> None:
    data = load_case(_key("silu_and_mul"), hidden=True)
    outputs = _right(data)
    outputs["out"][row, 3] = 0x4700  # 32,768

    finding = judge(data, _stored(data, outputs), 0xFF).finding

    assert finding is not None
    assert finding.wrong.tolist() == [row * 64 + 3]


def _right(data: CaseData) -> dict[str, npt.NDArray[Any]]:
    return {
        name: reference.bits.reshape(-1, reference.columns).copy()
        for name, reference in data.references.items()
    }


def _stored(data: CaseData, bits: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    dtype = data.inputs["input"].dtype
    return {name: array.view(dtype) for name, array in bits.items()}


@pytest.mark.usefixtures("repeats_all")
def test_rounding_up_too_seldom_is_refused_by_one_copy_of_each_row() -> None:
    data = load_case(_key("silu_and_mul", "normal", B=640, H=512), hidden=True)
    exact = data.references["out"].exact.astype(np.float32).reshape(640, 512)
    cut = ((exact.view(np.uint32) + np.uint32(0x6000)) >> np.uint32(16)).astype(np.uint16)

    finding = judge(data, _stored(data, {"out": cut}), 0xFF).finding

    assert finding is not None
    assert finding.gate == "bias"
    assert finding.output.array.shape == (640, 512)
    differing = set(np.flatnonzero(cut.reshape(-1) != data.references["out"].bits).tolist())
    assert set(finding.wrong.tolist()) <= differing


@pytest.mark.usefixtures("repeats_all")
def test_the_copies_that_are_judged_together_lie_anywhere() -> None:
    data = load_case(_key("silu_and_mul", B=640, H=8), hidden=True)
    assert data.repeats is not None

    rows = data.repeats.places("out", np.arange(160) * 8) // 8

    assert 0.4 < float(np.mean(rows >= 320)) < 0.6


@pytest.mark.usefixtures("repeats_all")
def test_correctly_rounded_rows_pass_however_often_they_repeat() -> None:
    data = load_case(_key("silu_and_mul", "normal", B=640, H=512), hidden=True)

    assert judge(data, _stored(data, _right(data)), 0xFF).finding is None


def test_ordinary_inputs_and_a_quarter_of_the_others_are_drawn_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeated_rows, "MEDIUM_BYTES", 0)
    key = _key("silu_and_mul")

    def is_whole(seed: int, regime: str) -> bool:
        return load_case(replace(key, seed=seed, regime=regime), hidden=True).repeats is None

    assert all(is_whole(seed, "normal") for seed in range(8))
    assert all(is_whole(seed, "assorted") for seed in range(8))
    assert 10 <= sum(is_whole(seed, "tiny") for seed in range(100)) <= 40


def _empty(_: CaseKey) -> CaseData:
    return CaseData({}, {})


def test_workloads_and_regimes_of_one_seed_are_drawn_whole_independently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeated_rows, "MEDIUM_BYTES", 0)

    def drawn_whole(rows: int, regime: str) -> list[bool]:
        key = _key("silu_and_mul", regime, B=rows)
        seeds = (replace(key, seed=seed) for seed in range(60))
        return [load_case(one, _empty, hidden=True).repeats is None for one in seeds]

    first = drawn_whole(40, "channels")
    assert drawn_whole(48, "channels") != first
    assert drawn_whole(40, "outliers") != first


_LOOKED_UP = """\
name: looked_up
op_type: other
description: out = table[pos] + x, a row at a time.
axes: {M: {var: true}, D: {var: true}, P: {expr: "M"}}
tensors:
  table: {role: in, dtype: float32, shape: [P, D], static: true}
  pos: {role: in, dtype: int32, shape: [M]}
  x: {role: in, dtype: float32, shape: [M, D]}
  out: {role: out, dtype: float32, shape: [M, D]}
row_axis: M
workloads:
  m40xd16: {axes: {M: 40, D: 16}}
tolerance: fp32
flops: M * D
"""


@pytest.mark.usefixtures("repeats_all")
@pytest.mark.parametrize(
    ("tensor", "repeats"),
    [
        ("x: {role: in, dtype: float32, shape: [M, D]}", True),
        ("x: {role: in, dtype: int8, shape: [M, D]}", False),
        ("x: {role: in, dtype: float32, shape: [M, P]}", False),
    ],
)
def test_only_what_can_be_nothing_but_a_place_in_a_table_is_moved(
    tmp_path: Path, tensor: str, repeats: bool
) -> None:
    yaml = _LOOKED_UP.replace("x: {role: in, dtype: float32, shape: [M, D]}", tensor)
    folder = tmp_path / "looked_up"
    folder.mkdir()
    (folder / "problem.yaml").write_text(yaml, encoding="utf-8")
    (folder / "oracle.py").touch()
    problem = load_problem(folder)
    asked: list[int] = []

    def load(key: CaseKey) -> CaseData:
        asked.append(key.workload.axes["M"])
        return _empty(key)

    load_case(CaseKey(problem, problem.workloads[0], 1, "normal"), load, hidden=True)

    assert asked == ([10] if repeats else [40])


@pytest.mark.parametrize("hidden", [False, True])
def test_small_cases_have_no_row_twice(hidden: bool) -> None:
    assert load_case(_key("silu_and_mul"), hidden=hidden).repeats is None


@pytest.mark.usefixtures("repeats_all")
def test_rows_whose_places_nobody_knows_are_all_drawn() -> None:
    problem = _PROBLEMS["fused_add_rmsnorm_fp8_block_quant"]
    workload = make_workload(problem, {"B": 40, "H": 256})
    asked: list[int] = []

    def load(key: CaseKey) -> CaseData:
        asked.append(key.workload.axes["B"])
        return make_case_data(key)

    load_case(CaseKey(problem, workload, 1, "tiny"), load, hidden=True)

    assert asked == [40]
