"""The three bounds of bfloat16 outputs, each at its edge, with the others far from theirs.

From 1 to 2 a step of bfloat16 is 2^-7. Rows of ones that are off by whole steps have errors that
are counted in squared steps; the unit of n such elements is n / 12.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.oracle import Expected
from kopt.kernels.problem import TensorSpec
from kopt.kernels.rounding import round_to_bf16, round_to_e5m2, round_to_fp16
from kopt.tools.check.code_gate import code_gate
from kopt.tools.check.half_gate import half_error_ratio, half_gate, half_row_ratios
from kopt.tools.check.output import Finding, Output
from kopt.tools.check.plain_gates import float_gate
from kopt.tools.check.reference import RowNoise, make_reference
from support.small_outputs import bf16_rows, small_output
from support.synthetic_check import synthetic_problem

STEP = 2.0**-7


def _ones(*off_by_one_step: int, columns: int = 120) -> Output:
    """Return rows of ones of which so many, the last of each row, are one step up."""
    got = np.ones((len(off_by_one_step), columns))
    for row, count in enumerate(off_by_one_step):
        got[row, columns - count :] += STEP
    return bf16_rows(np.ones(got.shape), got)


def _one(exact: float, got: float, slack: float | None = None) -> Output:
    """Return a row of one element and 999 right ones, so that no average says anything."""
    row = np.ones((1, 1000))
    row[0, 3] = exact
    stored = np.ones((1, 1000))
    stored[0, 3] = got
    return bf16_rows(row, stored, slack)


def _finding(output: Output) -> Finding:
    finding = half_gate(output)
    assert finding is not None
    return finding


@pytest.mark.parametrize("got", [2.0**-9, -(2.0**-9), 2.0**-100])
def test_nothing_but_zero_is_right_where_the_exact_value_is_zero(got: float) -> None:
    finding = _finding(_one(0.0, got))
    assert (finding.gate, finding.wrong.tolist()) == ("ulp", [3])
    assert half_gate(_one(0.0, -0.0)) is None


def test_rows_of_zeros_add_nothing_to_what_other_rows_may_be_off() -> None:
    zeros = np.zeros((1, 120))
    noise = bf16_rows(zeros, zeros).reference.noise
    assert noise is not None
    assert float(noise.ulp_sq.sum()) < 2.0**-200


def test_right_bits_pass_and_so_does_an_output_that_bf16_rounding_does_not_judge() -> None:
    assert half_gate(_ones(0, 0)) is None
    floats = small_output("float32", [1.0], np.ones(1, np.float32), np.full(1, 2.0, np.float32))
    assert half_gate(floats) is None
    assert half_error_ratio(floats) is None
    assert half_row_ratios(floats) is None


@pytest.mark.parametrize(
    ("exact", "steps", "is_accepted"),
    [
        (1.0, 2, True),
        (1.0, 3, False),
        (1.0, -4, True),  # below 1 a step is half as large
        (1.0, -5, False),
        (2 - STEP, -3, True),  # the window of values just below 2 has room for 3.49 steps
        (2 - STEP, -4, False),
        (-2 + STEP, 3, True),
        (-2 + STEP, 4, False),
    ],
)
def test_an_element_is_two_steps_off_or_inside_the_window_around_the_exact_value(
    exact: float, steps: int, is_accepted: bool
) -> None:
    step = STEP / 2 if exact == 1.0 and steps < 0 else STEP
    assert (half_gate(_one(exact, exact + steps * step)) is None) is is_accepted


def test_two_steps_are_allowed_where_the_window_is_narrower() -> None:
    exact = 1 + STEP / 2 + STEP / 32  # rounds up, so that two steps more are 2.47 from it
    assert half_gate(_one(exact, 1 + 3 * STEP)) is None
    assert half_gate(_one(exact, 1 + 4 * STEP)) is not None


def test_an_element_exactly_at_the_edge_of_the_window_is_accepted() -> None:
    """3 * 2^-8 of 1 and half a step are 4 steps below 1: 2^-6 in all."""
    assert half_gate(_one(1.0, 1 - 2.0**-6)) is None


@pytest.mark.parametrize(("slack", "is_accepted"), [(2 * STEP, True), (STEP / 2, False)])
def test_slack_widens_the_window_of_an_element(slack: float, is_accepted: bool) -> None:
    assert (half_gate(_one(1.0, 1 + 4 * STEP, slack)) is None) is is_accepted


def test_an_element_of_the_wrong_sign_is_refused_and_shown() -> None:
    finding = _finding(_one(1.0, -1.0))
    assert (finding.gate, finding.wrong.tolist(), finding.shown) == ("ulp", [3], 3)
    assert (finding.expected, finding.got) == ("1", "-1")


def test_the_whole_error_is_bounded_by_the_total_ratio() -> None:
    """1.9^2 * 120 / 12 + 3.5^2 are 48.35 squared steps."""
    assert half_gate(_ones(48)) is None
    finding = _finding(_ones(49))
    assert finding.gate == "total_l2"
    assert finding.wrong.tolist() == list(range(71, 120))
    assert finding.shown == 71
    assert finding.note.startswith("the whole error is 2.21 times that of correct rounding, 1.9")


def test_the_element_shown_of_a_coarse_whole_is_of_the_first_row_that_differs() -> None:
    finding = _finding(_ones(0, 1, 123, columns=123))
    assert (finding.gate, finding.shown) == ("total_l2", 2 * 123 - 1)


def test_the_error_of_one_row_is_bounded_by_the_row_ratio() -> None:
    """2.1^2 * 120 / 12 + 3.5^2 are 56.35 squared steps, and the whole has room for 192.65."""
    assert half_gate(_ones(0, 0, 56, 0, 0)) is None
    finding = _finding(_ones(0, 10, 57, 0, 58))
    assert finding.gate == "row_l2"
    assert finding.wrong.tolist() == [*range(303, 360), *range(542, 600)]
    assert finding.shown == 303
    assert finding.note == "row 2 has 2.39 times the error of correct rounding, 2.1 at most"


def test_of_a_coarse_row_the_element_with_the_largest_error_is_shown() -> None:
    got = np.ones((5, 120))
    got[1, 60:] += STEP
    got[1, 77] -= 3 * STEP
    got[3, 100:] += 2 * STEP
    finding = _finding(bf16_rows(np.ones(got.shape), got))
    assert finding.shown == 120 + 77
    assert (finding.expected, finding.got) == ("1", "0.984375")


def test_the_error_is_that_of_correct_rounding_corrected_where_bits_differ() -> None:
    """At 1 + 2^-9 a right 1 is off by a quarter step and the next value by three quarters."""
    exact, got = np.full((2, 12), 1 + STEP / 4), np.ones((2, 12))
    got[1, 4] += STEP
    output = bf16_rows(exact, got)
    sums = np.array([12 / 16, 11 / 16 + 9 / 16])
    ratios = half_row_ratios(output)
    assert ratios is not None
    np.testing.assert_allclose(ratios, np.sqrt(sums))
    assert half_error_ratio(output) == pytest.approx(np.sqrt(sums.sum() / 2))


def test_rows_of_one_element_have_errors_of_their_own() -> None:
    ratios = half_row_ratios(_ones(0, 1, 0, 0, columns=1))
    assert ratios is not None
    np.testing.assert_allclose(ratios, [0, 12**0.5, 0, 0])


@pytest.mark.parametrize(("slack", "steps"), [(0.0, 1.0), (0.5, 0.5), (1.5, 0.0)])
def test_slack_lowers_an_error_to_zero_at_most(slack: float, steps: float) -> None:
    got = np.ones((1, 12))
    got[0, 4] += STEP
    output = bf16_rows(np.ones((1, 12)), got, slack * STEP)
    assert half_error_ratio(output) == pytest.approx(steps)


def test_rows_without_a_written_element_have_no_error() -> None:
    none = np.zeros(2)
    bits = np.zeros(2, np.uint16)
    noise = RowNoise(none, none, none)
    output = small_output("bfloat16", np.zeros((2, 1)), bits, bits, noise=noise)
    assert half_error_ratio(output) == 0.0
    ratios = half_row_ratios(output)
    assert ratios is not None
    assert ratios.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("got", [5.0, -5.0, 2.0**127])
def test_no_finite_value_stands_for_an_infinity(got: float) -> None:
    assert _finding(_one(-np.inf, got)).gate == "ulp"


def test_a_value_that_overflows_widens_no_bound_of_its_neighbors(tmp_path: Path) -> None:
    exact = np.ones((8, 64))
    exact[0, 0] = 1e39
    expected = Expected(exact, round_to_bf16(exact), np.ones(exact.shape, np.bool_))
    reference = make_reference(synthetic_problem(tmp_path), "y_bf16", expected)
    got = np.where(exact > 1, np.inf, 1 + 2 * STEP)
    assert _finding(Output("y_bf16", reference, round_to_bf16(got))).gate == "total_l2"


def test_float16_is_judged_by_its_own_steps() -> None:
    ones = np.ones((1, 1000))
    noise = RowNoise(np.zeros(1), np.full(1, 1000 * 2.0**-20), np.full(1, 2.0**-10))
    for steps, is_accepted in ((2, True), (3, False)):
        got = ones.astype(np.float16)
        got[0, 3] += np.float16(steps * 2.0**-10)
        output = small_output("float16", ones, ones.astype(np.float16), got, noise=noise)
        assert (half_gate(output) is None) == is_accepted


def test_a_float16_reference_has_the_noise_of_its_format(tmp_path: Path) -> None:
    tensor = TensorSpec(name="out", role="out", dtype="float16", shape=("R", "C"))
    problem = synthetic_problem(tmp_path).model_copy(update={"tensors": (tensor,), "row_axis": "R"})
    exact = np.full((2, 8), 1 + 2.0**-12)
    expected = Expected(exact, round_to_fp16(exact), np.ones(exact.shape, dtype=np.bool_))
    noise = make_reference(problem, "out", expected).noise
    assert noise is not None
    assert noise.correct_sq.tolist() == [8 * 2.0**-24] * 2
    assert noise.ulp_max.tolist() == [2.0**-10] * 2


def test_float64_is_not_what_float32_computes() -> None:
    exact = np.full((1, 4), 1 / 3)
    for error, is_accepted in ((2.0**-42, True), (2.0**-24, False)):
        output = small_output("float64", exact, exact, exact * (1 + error))
        assert (float_gate(output) is None) == is_accepted


def test_e5m2_takes_either_neighbor_of_a_boundary_and_no_other() -> None:
    exact = np.array([1.124, 1.126, 1.2])
    right = round_to_e5m2(exact)
    down = small_output("float8_e5m2", exact, right, round_to_e5m2(np.array([1.25, 1.0, 1.25])))
    assert code_gate(down, None) is None
    low = small_output("float8_e5m2", exact, right, round_to_e5m2(np.array([1.0, 1.25, 1.0])))
    finding = code_gate(low, None)
    assert finding is not None
    assert finding.wrong.tolist() == [2]


@pytest.mark.parametrize(
    ("exact", "got", "slack"),
    [
        (1.0 + STEP / 2 - 0.001, 1.0 + STEP, 0.0),
        (1.0 + STEP / 2 - 0.001, 1.0 + STEP, 0.0009),
        (1.0, 1.0 + STEP, 0.003),
        (0.0, 2.0**-100, 0.0),
        (2.0**-20, -(2.0**-20), 1.9 * 2.0**-20),
    ],
)
def test_an_element_that_no_value_within_the_slack_rounds_to_is_refused(
    exact: float, got: float, slack: float
) -> None:
    finding = half_gate(_rounded_once(_one(exact, got, slack)))
    assert finding is not None
    assert (finding.gate, finding.wrong.tolist()) == ("one_rounding", [3])


@pytest.mark.parametrize(
    ("exact", "got", "slack"),
    [
        (1.0 + STEP / 2 - 0.001, 1.0 + STEP, 0.0011),
        (1.0, 1.0 + STEP, 0.004),
        (1.0, 1.0 - STEP / 2, 0.002),
        (2.0**-20, -(2.0**-20), 2.1 * 2.0**-20),
    ],
)
def test_the_rounding_of_any_value_within_the_slack_is_right(
    exact: float, got: float, slack: float
) -> None:
    assert half_gate(_rounded_once(_one(exact, got, slack))) is None


def test_where_values_are_rounded_once_a_second_rounding_everywhere_is_refused() -> None:
    output = _ones(30)
    assert half_gate(output) is None
    finding = half_gate(_rounded_once(output))
    assert finding is not None
    assert finding.gate == "one_rounding"


def _rounded_once(output: Output) -> Output:
    return replace(output, reference=replace(output.reference, one_rounding=True))
