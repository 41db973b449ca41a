"""Float32 results at the edges of their window, below the normal numbers, and infinities."""

import numpy as np
import pytest

from kopt.tools.check.plain_gates import float_gate
from kopt.tools.check.tolerances import FLOAT32_WINDOW
from support.small_outputs import small_output


@pytest.mark.parametrize(
    ("value", "slack", "is_accepted"),
    [
        (4 + 4 * FLOAT32_WINDOW, None, True),
        (4 + 5 * FLOAT32_WINDOW, None, False),
        (4 - 4 * FLOAT32_WINDOW, None, True),
        (4 - 5 * FLOAT32_WINDOW, None, False),
        (4.5 + 4 * FLOAT32_WINDOW, 0.5, True),
        (4.5 + 4 * FLOAT32_WINDOW, 0.25, False),
    ],
)
def test_a_float32_result_is_right_up_to_the_edges_of_its_window(
    value: float, slack: float | None, is_accepted: bool
) -> None:
    right, got = np.full(1, 4.0, np.float32), np.asarray([value], np.float32)
    output = small_output("float32", [4.0], right, got, slack=slack)
    assert (float_gate(output) is None) is is_accepted


@pytest.mark.parametrize(
    ("exact", "got", "is_accepted"),
    [
        (5.6829656e-42, 5.6836666e-42, True),
        (5.6829656e-42, 5.6822653e-42, True),
        (5.6829656e-42, 5.6850678e-42, False),
        (5.6829656e-42, 0.0, False),
        (5.6829656e-42, -5.6829656e-42, False),
        (2e-38, 8.3e-39, False),
        (0.0, 3e-45, False),
    ],
)
def test_a_float32_result_below_the_normal_numbers_may_be_one_step_off(
    exact: float, got: float, is_accepted: bool
) -> None:
    right = np.asarray([exact], np.float32)
    output = small_output("float32", [exact], right, np.asarray([got], np.float32))
    assert (float_gate(output) is None) is is_accepted


def test_a_number_where_a_float32_infinity_is_right_is_refused() -> None:
    right, got = np.asarray([np.inf], np.float32), np.ones(1, np.float32)
    assert float_gate(small_output("float32", [np.inf], right, got)) is not None
