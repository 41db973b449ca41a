"""Error patterns in words."""

import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.check.mismatch import describe_pattern

ROWS, COLUMNS = 16, 64


def _describe(wrong: npt.NDArray[np.bool_]) -> str:
    return describe_pattern(np.flatnonzero(wrong), *wrong.shape)


def _grid() -> npt.NDArray[np.bool_]:
    return np.zeros((ROWS, COLUMNS), dtype=np.bool_)


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        (slice(None), slice(None), "every element"),
        (3, 5, "one element"),
        (3, slice(None), "whole rows: row 3"),
        ([3, 7], slice(None), "whole rows: rows 3, 7"),
        (slice(12, None), slice(None), "whole rows: tail only, the last 4 rows (from 12)"),
        (slice(1, None, 2), slice(None), "whole rows: every 2nd row, from 1"),
        (slice(None), slice(5, None, 16), "every 16th element, from 5 of every row"),
        (slice(None), slice(60, None), "tail only, the last 4 elements (from 60) of every row"),
        (slice(None), slice(0, 8), "the first 8 elements of every row"),
        (slice(None), slice(16, 40), "elements 16 to 39 of every row"),
        (slice(None), 9, "element 9 of every row"),
        (3, slice(32, 48), "one block of 16, columns 32 to 47 of row 3: 16 of 16 elements"),
        (3, [33, 36], "one block of 16, columns 32 to 47 of row 3: 2 of 16 elements"),
        (slice(2, 5), slice(8, 12), "elements 8 to 11 of rows 2 to 4"),
    ],
)
def test_regular_errors_are_named(rows: object, columns: object, words: str) -> None:
    wrong = _grid()
    wrong[rows, columns] = True  # type: ignore[index]  # parametrised with all kinds of index
    assert _describe(wrong) == words


def test_a_regular_error_with_right_elements_between_keeps_its_name() -> None:
    wrong = _grid()
    wrong[:, 48:] = np.random.default_rng(1).random((ROWS, 16)) < 0.8
    assert _describe(wrong).startswith("tail only, the last 16 elements (from 48) of every row, 8")


def test_scattered_errors_are_called_scattered() -> None:
    wrong = _grid()
    wrong[[1, 4, 9], [3, 60, 31]] = True
    assert _describe(wrong) == "scattered: 3 elements in 3 of 16 rows"


def test_sparse_errors_in_one_row_name_the_row() -> None:
    wrong = _grid()
    wrong[4, [3, 60, 31, 1]] = True
    assert _describe(wrong) == "elements 1, 3, 31, 60 of row 4"


def test_a_tensor_of_one_column_has_rows_only() -> None:
    wrong = np.zeros((8, 1), dtype=np.bool_)
    wrong[6:] = True
    assert _describe(wrong) == "whole rows: tail only, the last 2 rows (from 6)"
