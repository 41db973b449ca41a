"""Each gate at the edges of its window: the last value it accepts, the first it refuses, its words.

The windows come from tolerances.py; the values are such that no rounding blurs an edge.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.kernels.oracle import ScaledBy
from kopt.kernels.rounding import pack_e2m1
from kopt.tools.check.code_gate import (
    code_gate,
    code_scale_gate,
    float_scale_gate,
    scale_index,
    suspects,
)
from kopt.tools.check.number_formats import E2M1
from kopt.tools.check.output import Finding, Output
from kopt.tools.check.plain_gates import exact_gate, untouched_gate
from kopt.tools.check.tolerances import CODE_WINDOW, FLOAT_SCALE_WINDOW
from kopt.tools.check.unwritten_gate import POISONS, other_poison, unwritten_gate
from support.small_outputs import small_output

ONE = 0x38
"""1.0 as e4m3; its neighbours are 0.9375 and 1.125."""
LOWER, UPPER = 0.96875 * (1 - CODE_WINDOW), 1.0625 * (1 + CODE_WINDOW)
"""The window of the e4m3 code of 1.0."""


def _codes(
    exact: Sequence[float], got: Sequence[int], scale: float, right: Sequence[int] | None = None
) -> tuple[Output, Output]:
    """Return e2m1 codes and the one float32 scale that the candidate stored for them."""
    block = ScaledBy("scale", len(exact))
    stored = np.asarray([scale], np.float32)
    before = pack_e2m1(np.asarray([0] * len(exact) if right is None else right, np.uint8))
    codes = pack_e2m1(np.asarray(got, np.uint8))
    return (
        small_output(E2M1, exact, before, codes, scaled_by=block),
        small_output("float32", [scale], stored, stored),
    )


def _e4m3(exact: float, got: int, right: int, slack: float | None = None) -> Output:
    stored = np.asarray([got], np.uint8)
    return small_output(
        "float8_e4m3fn", [exact], np.asarray([right], np.uint8), stored, slack=slack
    )


def _finding(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("exact", "is_accepted"),
    [
        (LOWER, True),
        (np.nextafter(LOWER, 0), False),
        (UPPER, True),
        (np.nextafter(UPPER, 2), False),
        (-1.0, False),
    ],
)
def test_a_code_is_right_up_to_the_edges_of_its_window(exact: float, is_accepted: bool) -> None:
    assert (code_gate(_e4m3(exact, ONE, ONE - 1), None) is None) is is_accepted


@pytest.mark.parametrize(
    ("exact", "slack", "is_accepted"),
    [
        (LOWER - 0.25, 0.25, True),
        (LOWER - 0.25, 0.2, False),
        (UPPER + 0.25, 0.25, True),
        (UPPER + 0.25, 0.2, False),
        (-0.5, 2.0, True),
    ],
)
def test_slack_widens_the_window_of_a_code_on_both_sides(
    exact: float, slack: float, is_accepted: bool
) -> None:
    assert (code_gate(_e4m3(exact, ONE, ONE - 1, slack), None) is None) is is_accepted


def test_a_value_of_either_sign_within_its_slack_takes_a_code_of_either_sign() -> None:
    smallest, least = 0x01, 2.0**-9
    assert code_gate(_e4m3(-least, smallest, 0x81, slack=least), None) is None
    assert code_gate(_e4m3(-least, smallest, 0x81, slack=least / 2), None) is not None


def test_the_largest_code_stands_for_everything_above_and_zero_scales_for_every_code() -> None:
    assert code_gate(*_codes([1e9, 1e9], [7, 7], 1.0)) is None
    assert code_gate(*_codes([1e9, 1e9], [7, 6], 1.0)) is not None
    assert code_gate(*_codes([1.0, 1.0], [3, 12], 0.0)) is None


@pytest.mark.parametrize(
    ("exact", "expected"),
    [
        (6.0, "3 (rounds 3 with the candidate's scale 2; worth 6)"),
        (-6.0, "-3 (rounds -3 with the candidate's scale 2; worth -6)"),
        (1.0, "0.5 (rounds 0.5 with the candidate's scale 2; worth 1)"),
        (0.0, "0 (rounds 0 with the candidate's scale 2; worth 0)"),
    ],
)
def test_a_wrong_code_is_reported_with_the_one_its_scale_makes_right(
    exact: float, expected: str
) -> None:
    finding = _finding(code_gate(*_codes([0.0, exact], [0, 6], 2.0)))
    assert finding.wrong.tolist() == [1]
    assert finding.shown == 1
    assert finding.expected == expected
    assert finding.got == "4 (code 0x6); worth 8"


def test_a_wrong_code_without_a_scale_is_reported_with_the_nearest_code() -> None:
    finding = _finding(code_gate(_e4m3(1.12, ONE, ONE + 1), None))
    assert finding.expected == "1.125 (rounds 1.12; worth 1.125)"
    assert finding.got == "1 (code 0x38); worth 1"


@pytest.mark.parametrize(
    ("columns", "changed", "suspected"),
    [
        (32, [0], range(16)),
        (32, [2], range(32, 48)),
        (32, [3], range(48, 64)),
        (24, [1], range(16, 24)),
        (24, [2], range(24, 40)),
        (24, [3], range(40, 48)),
        (18, [1], range(16, 18)),
        (17, [0, 1], range(17)),
        (17, [2, 3], range(17, 34)),
    ],
)
def test_every_code_of_a_block_whose_scale_changed_is_judged(
    columns: int, changed: list[int], suspected: range
) -> None:
    right = np.ones(4, np.float32)
    got = right.copy()
    got[changed] = 2.0
    codes = np.zeros(columns, np.uint8)  # two rows of half a byte each
    by = ScaledBy("scale", 16)
    output = small_output(E2M1, np.zeros((2, columns)), codes, codes, scaled_by=by)
    scale = small_output("float32", right.astype(np.float64), right, got)
    assert suspects(output, scale).tolist() == list(suspected)
    indices = np.asarray(suspected)
    assert set(scale_index(output, scale, indices).tolist()) == set(changed)


def test_a_code_left_over_under_a_changed_scale_is_refused_in_any_row() -> None:
    """The codes have the right bits, but not for the scale that was stored with them."""
    right = np.ones(2, np.float32)
    got = np.asarray([1.0, 2.0], np.float32)
    codes = pack_e2m1(np.full(32, 2, np.uint8))
    output = small_output(E2M1, np.ones((2, 16)), codes, codes, scaled_by=ScaledBy("scale", 16))
    finding = _finding(code_gate(output, small_output("float32", [1.0, 1.0], right, got)))
    assert finding.wrong.tolist() == list(range(16, 32))


def test_a_wrong_code_is_refused_although_another_block_has_a_changed_scale() -> None:
    right, got = np.ones(2, np.float32), np.asarray([1.0, 1.01], np.float32)
    exact, stored = np.ones((2, 16)), np.full(32, 2, np.uint8)
    stored[3] = 5
    by = ScaledBy("scale", 16)
    before = pack_e2m1(np.full(32, 2, np.uint8))
    output = small_output(E2M1, exact, before, pack_e2m1(stored), scaled_by=by)
    finding = _finding(code_gate(output, small_output("float32", [1.0, 1.0], right, got)))
    assert finding.wrong.tolist() == [3]


def test_codes_and_scales_of_an_oracle_that_do_not_fit_are_its_fault() -> None:
    codes, scales = np.zeros(32, np.uint8), np.ones(3, np.float32)
    output = small_output(E2M1, np.zeros((2, 32)), codes, codes, scaled_by=ScaledBy("scale", 16))
    scale = small_output("float32", [1.0] * 3, scales, scales)
    with pytest.raises(ToolError, match="gives 3 scales 'out' for codes 'out' that need 4"):
        scale_index(output, scale, np.arange(2))


@pytest.mark.parametrize(
    ("value", "slack", "is_accepted"),
    [
        (4 + 4 * FLOAT_SCALE_WINDOW, None, True),
        (4 + 4 * FLOAT_SCALE_WINDOW + 2.0**-20, None, False),
        (4 - 4 * FLOAT_SCALE_WINDOW, None, True),
        (4 - 4 * FLOAT_SCALE_WINDOW - 2.0**-20, None, False),
        (4.5 + 4 * FLOAT_SCALE_WINDOW, 0.5, True),
        (4.5 + 4 * FLOAT_SCALE_WINDOW, 0.25, False),
    ],
)
def test_a_float_scale_is_right_up_to_the_edges_of_its_window(
    value: float, slack: float | None, is_accepted: bool
) -> None:
    right, got = np.full(1, 4.0, np.float32), np.asarray([value], np.float32)
    output = small_output("float32", [4.0], right, got, slack=slack)
    assert (float_scale_gate(output) is None) is is_accepted


@pytest.mark.parametrize(
    ("exact", "got", "right", "is_accepted"),
    [
        (LOWER, ONE, ONE - 1, True),
        (np.nextafter(LOWER, 0), ONE, ONE - 1, False),
        (UPPER, ONE, ONE + 1, True),
        (np.nextafter(UPPER, 2), ONE, ONE + 1, False),
        (2.0**-10 * (1 + CODE_WINDOW), 0, 1, True),
        (2.0**-10 * (1 + 2 * CODE_WINDOW), 0, 1, False),
        (1.0, ONE, ONE - 2, False),
    ],
)
def test_a_scale_is_one_step_off_only_beside_the_boundary(
    exact: float, got: int, right: int, is_accepted: bool
) -> None:
    assert (code_scale_gate(_e4m3(exact, got, right)) is None) is is_accepted


@pytest.mark.parametrize(
    ("right", "got", "is_accepted"), [(0.0, -0.0, True), (1.0, 1.0 + 2.0**-23, False)]
)
def test_an_output_with_one_right_answer_is_equal_in_value(
    right: float, got: float, is_accepted: bool
) -> None:
    stored = [np.asarray([value], np.float32) for value in (right, got)]
    assert (exact_gate(small_output("float32", [right], *stored)) is None) is is_accepted


def test_changed_bytes_outside_the_result_are_shown_with_all_their_digits() -> None:
    right = np.zeros(3, np.uint16)
    written = np.asarray([True, False, False])
    output = small_output("bfloat16", np.zeros(3), right, right + np.uint16(1), written=written)
    finding = _finding(untouched_gate(output, np.asarray([0, 1, 0xAB], np.uint16)))
    assert finding.wrong.tolist() == [2]
    assert (finding.expected, finding.got) == ("unchanged bytes 0x00AB", "0x0001")


def test_an_element_that_follows_only_one_poison_is_written() -> None:
    first, second = np.asarray([0xFFFF, 0xFFFF], np.uint16), np.asarray([0xFFFF, 0x5555], np.uint16)
    output = small_output("uint16", [0.0, 0.0], np.zeros(2, np.uint16), first)
    finding = _finding(unwritten_gate(output, [(first, 0xFF), (second, 0x55)]))
    assert finding.wrong.tolist() == [1]
    assert unwritten_gate(output, [(first[:1], 0xFF), (second[:1], 0x55)]) is None


def test_elements_outside_the_result_may_be_left_alone() -> None:
    stored = np.asarray([0, 0xFFFF], np.uint16)
    written = np.asarray([True, False])
    output = small_output("uint16", [0.0, 0.0], np.zeros(2, np.uint16), stored, written=written)
    runs = [(stored, 0xFF), (np.asarray([0, 0x5555], np.uint16), 0x55)]
    assert unwritten_gate(output, runs) is None


def test_each_poison_has_the_other_one() -> None:
    assert [other_poison(poison) for poison in POISONS] == [0x55, 0xFF]


def test_both_codes_of_a_byte_left_alone_are_unwritten() -> None:
    first, second = (np.asarray([0, 0, poison, poison], np.uint8) for poison in POISONS)
    second[3] = 0
    output = small_output(E2M1, np.zeros(8), np.zeros(4, np.uint8), first)
    finding = _finding(unwritten_gate(output, [(first, 0xFF), (second, 0x55)]))
    assert finding.wrong.tolist() == [4, 5]


def test_unwritten_elements_of_permuted_storage_are_counted_in_logical_order() -> None:
    first, second = (np.asarray([0, 0, poison], np.uint8) for poison in POISONS)
    output = small_output("uint8", np.zeros(3), np.zeros(3, np.uint8), first)
    permuted = replace(output.reference, offsets=np.asarray([2, 0, 1]))
    runs = [(first, 0xFF), (second, 0x55)]
    finding = _finding(unwritten_gate(replace(output, reference=permuted), runs))
    assert finding.wrong.tolist() == [0]
