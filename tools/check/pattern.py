"""The shape of an error in words: which rows, which columns, every k-th, the tail only.

Works on the flat indices of wrong elements alone and knows nothing of values; `symptoms.py` looks
at those.
"""

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

_BLOCK = 16  # elements that share one nvfp4 scale: the natural unit of a mistake here
_SHOWN = 4
_DENSE = 0.5


def describe_pattern(wrong: Indices, rows: int, columns: int) -> str:
    """Return where `wrong` lies in a (rows, columns) tensor, as one phrase.

    Args:
        wrong: Ascending flat indices, at least one.
        rows: Rows of the logical tensor.
        columns: Logical elements of one row.
    """
    count = wrong.size
    if count == rows * columns:
        return "every element"
    if count == 1:
        return "one element"
    row_of, column_of = np.divmod(wrong, columns)
    bad_rows, bad_columns = np.unique(row_of), np.unique(column_of)
    block = _one_block(bad_rows, bad_columns)
    if block:
        return f"{block}: {count} of {_BLOCK} elements"
    share = count / (bad_rows.size * bad_columns.size)
    where = _rectangle(bad_rows, bad_columns, rows, columns)
    if share == 1.0:
        return where
    if share >= _DENSE:
        return f"{where}, {share:.0%} of the elements there"
    if _is_regular(bad_rows, rows) or _is_regular(bad_columns, columns):
        return f"scattered over {where}, {share:.1%} of the elements there"
    return f"scattered: {count} elements in {bad_rows.size} of {rows} rows"


def _one_block(bad_rows: Indices, bad_columns: Indices) -> str:
    """Return the phrase for errors inside one block of one row, empty otherwise."""
    first, last = int(bad_columns[0]), int(bad_columns[-1])
    if bad_rows.size > 1 or first // _BLOCK != last // _BLOCK:
        return ""
    start = first // _BLOCK * _BLOCK
    return f"one block of {_BLOCK}, columns {start} to {start + _BLOCK - 1} of row {bad_rows[0]}"


def _rectangle(bad_rows: Indices, bad_columns: Indices, rows: int, columns: int) -> str:
    """Return the rows and columns that hold all errors."""
    all_rows, all_columns = bad_rows.size == rows, bad_columns.size == columns
    if all_rows and all_columns:
        return "all rows and columns"
    if all_columns:
        return f"whole rows: {_span(bad_rows, rows, 'row')}"
    if all_rows:
        return f"{_span(bad_columns, columns, 'element')} of every row"
    return f"{_span(bad_columns, columns, 'element')} of {_span(bad_rows, rows, 'row')}"


def _span(members: Indices, size: int, noun: str) -> str:
    """Return a set of indices in words; `members` ascend and are not all of `size`."""
    first, last = int(members[0]), int(members[-1])
    if members.size == 1:
        return f"{noun} {first}"
    step = int(np.gcd.reduce(np.diff(members)))
    if step > 1 and members.size > 2:
        return f"every {_ordinal(step)} {noun}, from {first}"
    if last - first + 1 == members.size:
        if last == size - 1:
            return f"tail only, the last {members.size} {noun}s (from {first})"
        if first == 0:
            return f"the first {members.size} {noun}s"
        return f"{noun}s {first} to {last}"
    if members.size <= _SHOWN:
        return f"{noun}s " + ", ".join(str(member) for member in members)
    return f"{members.size} {noun}s between {first} and {last}"


def _is_regular(members: Indices, size: int) -> bool:
    """Return whether the set is smaller than all, and contiguous or evenly spaced."""
    if members.size in (1, size):
        return members.size == 1
    gaps = np.diff(members)
    return bool(gaps.max() == 1 or np.gcd.reduce(gaps) > 1)


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{suffix or 'th'}"
