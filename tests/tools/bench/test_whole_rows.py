"""Rows that no oracle judged, held against another call on the same inputs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.bench.timed_case import Verified, VerifiedDraw
from kopt.tools.bench.whole_rows import disagreement, far_rows
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judged_rows import JudgedRows
from support.tiny_problem import tiny_problem

ROWS, COLUMNS = 64, 256
Array = npt.NDArray[Any]


@pytest.fixture
def data(tmp_path: Path) -> CaseData:
    """Return a case of which some rows are judged."""
    problem = tiny_problem(tmp_path)
    made = make_case_data(CaseKey(problem, problem.workloads[0], 1, "normal"))
    rows = np.array([0, 5, ROWS - 1])
    return replace(made, judged=JudgedRows(rows, ROWS, {"x": 0, "out": 0}))


def _right(dtype: Any = np.float32) -> Array:
    return np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(dtype)


def _is_far(data: CaseData, output: Array, other: Array) -> bool:
    return far_rows(data, {"out": output}, {"out": other})


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_honest_roundings_are_near(data: CaseData, dtype: Any) -> None:
    wanted = _right()
    assert not _is_far(data, (wanted * 1.002).astype(dtype), wanted.astype(dtype))


def _row_left_out(array: Array) -> None:
    array[17] = 0


def _columns_left_out(array: Array) -> None:
    array[17, -COLUMNS // 8 :] = 0


def _neighbour(array: Array) -> None:
    array[17] = array[18]


def _not_a_number(array: Array) -> None:
    array[17, 3] = np.nan


def _infinite(array: Array) -> None:
    array[17, 3] = np.inf


@pytest.mark.parametrize(
    "spoil", [_row_left_out, _columns_left_out, _neighbour, _not_a_number, _infinite]
)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_row_that_is_not_computed_is_far(
    data: CaseData, spoil: Callable[[Array], None], dtype: Any
) -> None:
    wanted = _right(dtype)
    wrong = wanted.copy()
    spoil(wrong)
    assert _is_far(data, wrong, wanted)


def test_rows_may_lie_along_any_axis(data: CaseData) -> None:
    wanted = _right().T.copy()
    wrong = wanted.copy()
    wrong[:, 17] = 0
    turned = replace(data, judged=JudgedRows(np.array([0, 1]), ROWS, {"out": 1}))
    assert _is_far(turned, wrong, wanted) and not _is_far(turned, wanted, wanted)


def test_what_cancels_may_differ_by_roundings_alone(data: CaseData) -> None:
    noise = _right() * 1e-7
    references = {"out": replace(data.references["out"], slack=np.full(8, 1e-6))}
    cancelled = replace(data, references=references)
    assert not _is_far(cancelled, noise, -noise)
    assert _is_far(cancelled, noise + 1e-4, noise)


@pytest.mark.parametrize("value", [-np.inf, np.inf, 1e300])
def test_equal_values_are_near_whatever_they_are(data: CaseData, value: float) -> None:
    wanted = _right(np.float64)
    wanted[17, 3] = value
    assert not _is_far(data, wanted, wanted.copy())
    wrong = wanted.copy()
    wrong[17] = 0
    assert _is_far(data, wrong, wanted)


def test_small_columns_count_beside_large_ones(data: CaseData) -> None:
    wanted = np.tile(_right(), (1, 3))
    wanted[:, :COLUMNS] *= 1000
    wrong = wanted.copy()
    wrong[17, -COLUMNS:] = 0
    assert _is_far(data, wrong, wanted)


def test_an_infinite_slack_allows_for_nothing_elsewhere(data: CaseData) -> None:
    slack = np.full(8, 1e-6)
    slack[3] = np.inf
    references = {"out": replace(data.references["out"], slack=slack)}
    wanted = _right()
    wrong = wanted.copy()
    wrong[17] = 0
    assert _is_far(replace(data, references=references), wrong, wanted)


@pytest.mark.parametrize(
    ("columns", "differing", "is_far"),
    [(COLUMNS, 4, False), (COLUMNS, 400, True), (1, 1, False), (1, 40, True)],
)
def test_few_places_of_equal_values_may_differ(
    data: CaseData, columns: int, differing: int, is_far: bool
) -> None:
    wanted = np.arange(ROWS * columns, dtype=np.int64).reshape(ROWS, columns)
    other = wanted.copy()
    other.reshape(-1)[:differing] += 1
    assert _is_far(data, other, wanted) == is_far


def test_where_all_rows_are_judged_nothing_is_compared(data: CaseData) -> None:
    wanted = _right()
    assert not _is_far(replace(data, judged=None), wanted * 0, wanted)


def test_a_candidate_far_from_the_reference_kernel_is_told_so(data: CaseData) -> None:
    def verified(out: Array) -> Verified:
        return Verified((VerifiedDraw(data, {"out": out}),))

    wanted = _right()
    wrong = wanted.copy()
    wrong[40] *= 2
    found = disagreement(verified(wrong), verified(wanted))
    assert found is not None and "reference kernel" in found.message
    assert disagreement(verified(wanted), verified(wanted)) is None
    itself = verified(wrong)
    assert disagreement(itself, itself) is None
