"""Errors that point one way are refused, however small; honest roundings go both ways and pass."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.oracle import ScaledBy
from kopt.kernels.rounding import decode, pack_e2m1, round_to_bf16, round_to_e2m1, round_to_e4m3
from kopt.tools.check import tolerances
from kopt.tools.check.bias_gate import Partners, bias_gate, deviations
from kopt.tools.check.mismatch import likely_cause
from kopt.tools.check.number_formats import E2M1
from kopt.tools.check.output import Finding, Output
from kopt.tools.check.signed_errors import signed_errors
from support.small_outputs import bf16_rows, small_output

ROWS, COLUMNS = 8, 4096
Values = npt.NDArray[np.float64]


def _values(rows: int = ROWS, columns: int = COLUMNS) -> Values:
    return np.random.default_rng(3).standard_normal((rows, columns))


def _bf16(x: Values) -> Values:
    return decode(round_to_bf16(x))


def _cut_off(x: Values) -> Values:
    bits = np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


def _judged(exact: Values, computed: Values) -> Finding | None:
    return bias_gate(bf16_rows(exact, _bf16(computed)), Partners(), {})


def _refused(finding: Finding | None) -> Finding:
    assert finding is not None
    assert finding.gate == "bias"
    return finding


def _factors(spread: float) -> Values:
    return 1 + spread * np.resize([1.0, -1.0], (ROWS, 1))


HONEST: tuple[Callable[[Values], Values], ...] = (
    lambda x: x,
    lambda x: _bf16(x * 0.7) / 0.7,
    lambda x: _bf16(_bf16(x * 0.7) / 0.7 / 1.1) * 1.1,
    lambda x: x * (1 + 2.0**-17),
)


@pytest.mark.parametrize("honest", HONEST)
def test_honest_roundings_pass(honest: Callable[[Values], Values]) -> None:
    exact = _values()
    assert _judged(exact, honest(exact)) is None


def test_values_that_are_cut_off_are_refused_by_name() -> None:
    exact = _values()
    output = bf16_rows(exact, _cut_off(exact))
    finding = _refused(bias_gate(output, Partners(), {}))
    assert "too small, -0.4" in finding.note
    cause = likely_cause(finding, np.zeros(exact.size, np.uint16))
    assert cause is not None
    assert "cut off" in cause


@pytest.mark.parametrize("factor", [1.002, 0.998, 1 + 0.5 / COLUMNS])
def test_one_factor_for_all_rows_is_refused_with_its_size(factor: float) -> None:
    exact = _values()
    finding = _refused(_judged(exact, exact * factor))
    cause = likely_cause(finding, np.zeros(exact.size, np.uint16))
    assert cause is not None
    assert f"{factor:.4f}"[:5] in cause


def test_rows_off_to_either_side_are_refused_one_by_one() -> None:
    exact = _values()
    finding = _refused(_judged(exact, exact * _factors(0.0005)))
    assert "in 8 of 8 rows errors agree: in row 0 " in finding.note
    cause = likely_cause(finding, np.zeros(exact.size, np.uint16))
    assert cause is not None
    assert "factor of its own, 0.999" in cause
    assert "half precision" in cause


def test_short_rows_are_judged_together() -> None:
    exact = _values(columns=tolerances.BIAS_LONG_ROW - 1)
    assert _judged(exact, exact * _factors(0.002)) is None
    _refused(_judged(exact, exact * 1.002))


def test_a_value_that_dominates_a_row_may_move_all_of_it() -> None:
    exact = _values()
    exact[:, 7] *= 1000
    assert _judged(exact, exact * _factors(0.002)) is None


def test_a_value_that_dominates_an_input_may_move_the_row() -> None:
    exact = _values()
    inputs = exact.copy()
    inputs[:, 7] *= 1000
    output = bf16_rows(exact, _bf16(exact * _factors(0.002)))
    assert bias_gate(output, Partners(), {"x": inputs}) is None
    assert bias_gate(output, Partners(), {"x": exact}) is not None


def test_inputs_that_repeat_few_values_are_not_judged() -> None:
    exact = _values()
    output = bf16_rows(exact, _bf16(exact * 1.002))
    few = np.copysign(1.0 + (exact > 1), exact)
    assert bias_gate(output, Partners(), {"x": few}) is None
    for other in (few[0], few.astype(np.int32), np.sign(exact)):
        assert bias_gate(output, Partners(), {"x": other}) is not None


def test_many_rows_must_agree() -> None:
    exact = np.resize(_values(), (tolerances.BIAS_MANY_ROWS, 64))
    one = np.where(np.arange(len(exact))[:, None] < 12, 1.02, 1.0)
    assert _judged(exact, exact * one) is None
    _refused(_judged(exact[:100], (exact * one)[:100]))
    _refused(_judged(exact, exact * 1.002))


def test_slack_hides_errors_of_its_size() -> None:
    exact = _values()
    got = _bf16(exact * 1.002)
    assert bias_gate(bf16_rows(exact, got, slack=0.02), Partners(), {}) is None


def _e4m3(exact: Values, codes: npt.NDArray[np.generic]) -> Output:
    return small_output("float8_e4m3fn", exact, round_to_e4m3(exact), codes)


def test_thresholds_one_percent_low_are_refused_in_e4m3() -> None:
    exact = _values() * 10
    finding = _refused(bias_gate(_e4m3(exact, round_to_e4m3(exact / 0.99)), Partners(), {}))
    assert "too large, +0.1" in finding.note


def test_codes_of_values_rounded_to_bf16_pass_whatever_their_scale() -> None:
    for scale in np.geomspace(1, 2, 20):
        exact = _values(2) * 10 * scale
        rounded = _bf16(exact / scale) * scale
        assert bias_gate(_e4m3(exact, round_to_e4m3(rounded)), Partners(), {}) is None


def _e2m1(exact: Values, factor: float, thresholds: float) -> tuple[Output, Output]:
    scales = np.full((ROWS, COLUMNS // 16), factor, np.float32)
    right = pack_e2m1(round_to_e2m1(exact / factor))
    got = pack_e2m1(round_to_e2m1(exact / factor / thresholds))
    block = ScaledBy("scale", 16)
    return (
        small_output(E2M1, exact, right, got, scaled_by=block),
        small_output("float32", scales.astype(np.float64), scales, scales),
    )


def test_thresholds_one_percent_low_are_refused_in_e2m1() -> None:
    exact = np.clip(_values() * 2, -6, 6)
    codes, scale = _e2m1(exact, 0.5, 0.99)
    _refused(bias_gate(codes, Partners(scale), {}))
    codes, scale = _e2m1(exact, 0.5, 1.0)
    assert bias_gate(codes, Partners(scale), {}) is None


def test_codes_follow_the_scale_of_the_candidate() -> None:
    exact = np.clip(_values() * 2, -6, 6)
    codes, scale = _e2m1(exact, 0.5, 1.0)
    other = replace(scale, array=(scale.array * 1.02).astype(np.float32))
    indices, steps = signed_errors(codes, other)
    assert indices.size
    assert (steps == 1).all()


@pytest.mark.parametrize(("factor", "is_refused"), [(1.002, True), (0.998, True), (1.0, False)])
def test_float32_scales_off_by_a_fifth_of_a_percent_are_refused(
    factor: float, is_refused: bool
) -> None:
    exact = np.abs(_values(columns=64)) + 1
    noisy = exact * (1 + np.random.default_rng(1).normal(0, 0.002, exact.shape))
    scales = [values.astype(np.float32) for values in (exact, noisy * factor)]
    assert (
        bias_gate(small_output("float32", exact, *scales), Partners(), {}) is not None
    ) is is_refused


def test_ties_are_not_errors() -> None:
    exact = np.resize([1 + 2.0**-8, 1 + 3 * 2.0**-8], (ROWS, COLUMNS))
    away = exact + 2.0**-8
    assert signed_errors(bf16_rows(exact, away), None)[0].size == 0
    codes = round_to_e4m3(np.full((ROWS, COLUMNS), 1.125))
    assert signed_errors(_e4m3(np.full((ROWS, COLUMNS), 1.0625), codes), None)[0].size == 0


def test_the_bound_is_that_of_hoeffding() -> None:
    for checks in (1, 1000):
        chance = 2 * checks * np.exp(-np.square(deviations(checks)) / 2)
        assert chance == pytest.approx(tolerances.BIAS_FALSE_ALARM)


def _of_unit(output: Output, unit: float) -> Output:
    return replace(output, reference=replace(output.reference, unit=np.asarray(unit)))


@pytest.mark.parametrize("unit", [0.0101, 0.0127, 0.0143])
def test_codes_of_a_known_unit_show_a_fifth_of_a_percent(unit: float) -> None:
    exact = np.resize(_values(32) * 10, (32, COLUMNS))
    off = _e4m3(exact, round_to_e4m3(exact * 1.002))
    _refused(bias_gate(_of_unit(off, unit), Partners(), {}))
    assert bias_gate(off, Partners(), {}) is None
    before = _e4m3(exact, round_to_e4m3(_bf16(exact * unit) / unit))
    assert bias_gate(_of_unit(before, unit), Partners(), {}) is None


def test_values_next_to_ties_may_have_been_rounded_to_bf16_either_way() -> None:
    unit = 0.0101
    values = np.resize(_values(32) * 10 * unit, (32, COLUMNS))
    step = np.exp2(np.floor(np.log2(np.abs(values))) - 7)
    ties = _cut_off(values) + np.copysign(step / 2, values)
    exact = np.where(np.arange(COLUMNS) % 8 == 0, ties, values) / unit
    for off, is_refused in ((2.0**-20, False), (-(2.0**-20), False), (2.0**-9, True)):
        before = _bf16(exact * unit * (1 + off)) / unit
        finding = bias_gate(_of_unit(_e4m3(exact, round_to_e4m3(before)), unit), Partners(), {})
        assert (finding is not None) == is_refused
    cut_off = _of_unit(_e4m3(exact, round_to_e4m3(_cut_off(exact * unit) / unit)), unit)
    assert "too small" in _refused(bias_gate(cut_off, Partners(), {})).note


def test_scales_of_values_rounded_before_pass_and_others_do_not() -> None:
    exact = _values(64) * 10
    unit = 0.0123
    rounded = _bf16(exact * unit) / unit
    amax, before = (np.abs(v).reshape(64, -1, 16).max(axis=2) / 6 for v in (exact, rounded))
    codes = small_output(
        E2M1,
        exact,
        pack_e2m1(round_to_e2m1(exact)),
        pack_e2m1(round_to_e2m1(exact)),
        scaled_by=ScaledBy("scale", 16),
    )
    partners = Partners(codes=_of_unit(codes, unit))
    assert bias_gate(_e4m3(amax, round_to_e4m3(before)), partners, {}) is None
    for factor in (1.002, 0.998):
        _refused(bias_gate(_e4m3(amax, round_to_e4m3(amax * factor)), partners, {}))
