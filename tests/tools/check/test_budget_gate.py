"""Slack that is a statistic: what one element, one row and a whole may use of it.

Slack is eight deviations throughout. From 1 to 2 a step of bfloat16 is 2^-7.
"""

from dataclasses import replace

import numpy as np
import pytest

from kopt.tools.check.budget_gate import budget_gate
from kopt.tools.check.half_gate import half_gate
from kopt.tools.check.output import Output
from support.small_outputs import bf16_rows, small_output

STEP = 2.0**-7
DEVIATIONS = 8.0


def _floats(*errors: float) -> Output:
    """Return zeros that are off by so many deviations of 1."""
    exact = np.zeros((1, len(errors)))
    got = np.array([errors], dtype=np.float32)
    return _as_statistic(small_output("float32", exact, exact.astype(np.float32), got, slack=8.0))


def _steps_off(steps: int, rows: int, columns: int, wrong_rows: int) -> Output:
    """Return rows of ones with a deviation of 4 steps, the first few of them off by `steps`."""
    got = np.ones((rows, columns))
    got[:wrong_rows] += steps * STEP
    return _as_statistic(bf16_rows(np.ones(got.shape), got, slack=32 * STEP))


def _as_statistic(output: Output) -> Output:
    return replace(output, reference=replace(output.reference, slack_deviations=DEVIATIONS))


def _gate(output: Output) -> str | None:
    finding = half_gate(output)
    return None if finding is None else finding.gate


@pytest.mark.parametrize(("deviations", "is_accepted"), [(2.6, True), (2.7, False)])
def test_a_whole_of_many_elements_has_an_average(deviations: float, is_accepted: bool) -> None:
    """2.5^2 and the 8^2 of one element among a hundred are 2.62^2."""
    assert (budget_gate(_floats(*[deviations] * 100)) is None) is is_accepted


def test_a_whole_of_one_element_may_use_that_element_s_slack() -> None:
    assert budget_gate(_floats(8.0)) is None
    assert budget_gate(_floats(8.5)) is not None


def test_the_bound_in_the_note_is_the_one_that_was_passed() -> None:
    finding = budget_gate(_floats(*[3.0] * 100))
    assert finding is not None
    assert finding.gate == "total_budget"
    assert finding.note.startswith("the whole error is 3.0 times that of honest roundings, 2.6 at")


def test_a_row_of_one_16_bit_element_may_use_its_slack() -> None:
    assert _gate(_steps_off(33, 1024, 1, wrong_rows=1)) is None
    assert _gate(_steps_off(35, 1024, 1, wrong_rows=1)) == "ulp"


def test_rows_of_one_16_bit_element_that_are_all_far_off_are_a_coarse_whole() -> None:
    assert _gate(_steps_off(10, 1024, 1, wrong_rows=1024)) is None
    assert _gate(_steps_off(11, 1024, 1, wrong_rows=1024)) == "total_l2"


def test_a_long_row_of_16_bits_has_an_average() -> None:
    """2.5^2 * 120 * 4^2 and the 32^2 of one element are 10.4^2 * 120."""
    assert _gate(_steps_off(10, 5, 120, wrong_rows=1)) is None
    assert _gate(_steps_off(11, 5, 120, wrong_rows=1)) == "row_l2"


def test_a_scalar_of_16_bits_may_use_its_slack() -> None:
    assert _gate(_steps_off(33, 1, 1, wrong_rows=1)) is None
