"""From a gate's finding to the record that a candidate's author reads.

It says where the wrong elements lie as a pattern, and names a likely cause from what their values
look like: swapped nibbles, a shifted row, zeros, the old contents. A cause is a guess, never a
gate: it is offered only where most wrong elements fit and the fit cannot be chance.
"""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.check_result import Mismatch
from kopt.kernels.record import Diagnostic

from .cases import InputCase
from .number_formats import E2M1
from .output import Finding, Indices, Output
from .row_factors import row_factor_cause


def make_mismatch(finding: Finding, case: InputCase) -> Mismatch:
    """Return where and how an output is wrong.

    The index is logical, of `exact`'s shape, and row and column split it at the row axis. For
    `untouched` all three count stored elements, for padding has no logical place.
    """
    output = finding.output
    if finding.gate == "untouched":
        shape = output.array.shape or (1,)
        total, rows = output.bits.size, output.bits.size // shape[-1]
    else:
        shape = output.reference.shape or (1,)
        total, rows = output.reference.exact.size, output.reference.rows
    columns = total // max(rows, 1)
    index = tuple(int(part) for part in np.unravel_index(finding.shown, shape))
    row = finding.shown // columns
    is_stray = finding.stray_row is not None
    pattern = _STRAY if is_stray else describe_pattern(finding.wrong, rows, columns)
    if output.judged is not None and not is_stray:
        index = output.judged.index_in_whole(output.name, index)
        row = output.judged.row_in_whole(output.name, index, shape)
        judged = len(output.judged.rows)
        pattern += f", counted in the {judged} of {output.judged.total} rows that were judged"
    found = Mismatch(
        workload=case.workload.name,
        tensor=output.name,
        gate=finding.gate,
        index=index,
        row=row,
        column=finding.shown % columns,
        expected=finding.expected,
        got=finding.got,
        wrong_elements=int(finding.wrong.size),
        total_elements=total,
        pattern=pattern,
        seed=case.seed,
        regime=case.regime,
    )
    if finding.stray_row is not None:
        found = _in_stray_row(found, finding.stray_row)
    return _of_hidden_inputs(found) if case.hidden else found


def _in_stray_row(found: Mismatch, row: int) -> Mismatch:
    """Return the mismatch of a row that was not judged: no element of it has a right answer."""
    unknown = dict.fromkeys(("index", "column", "wrong_elements"))
    return found.model_copy(update={**unknown, "row": row})


_STRAY = "in a row that was not judged"


def make_diagnostic(finding: Finding, initial: npt.NDArray[Any], case: InputCase) -> Diagnostic:
    """Return the sentence that goes with the mismatch: what the gate allows, and a likely cause."""
    note = f"{_NOT_TOLD} ({case.regime})" if case.hidden else finding.note
    return Diagnostic(
        message=f"tensor {finding.tensor!r}, gate {finding.gate}: {note}",
        hint=likely_cause(finding, initial),
    )


_NOT_TOLD = "wrong on hidden inputs, of which no index or value is told"


def _of_hidden_inputs(found: Mismatch) -> Mismatch:
    """Return the mismatch without anything that a candidate could say of its inputs by it."""
    fields = ("index", "row", "column", "expected", "got", "wrong_elements", "seed")
    bare = dict.fromkeys(fields) | {"pattern": without_numbers(found.pattern)}
    return found.model_copy(update=bare)


def without_numbers(text: str) -> str:
    """Return `text` with an ellipsis for every number; names with digits, as bf16, stay."""
    return re.sub(r"(?<![\w.])\d[\w.%]*(?<!\.)", "…", text)


def of_hidden_inputs(found: Diagnostic) -> Diagnostic:
    """Return what a device found on hidden inputs: the line, and the words without numbers."""
    hint = None if found.hint is None else without_numbers(found.hint)
    return found.model_copy(update={"message": without_numbers(found.message), "hint": hint})


_SAMPLE = 4096
_MOST = 0.9
_ENOUGH = 8  # wrong elements below which a fit says nothing


def likely_cause(finding: Finding, initial: npt.NDArray[Any]) -> str | None:
    """Return a sentence on the likely cause, given what was there before (`output.initial_bits`).

    None when nothing fits.
    """
    if finding.gate in ("untouched", "unwritten") or finding.stray_row is not None:
        return None
    if finding.gate in ("row_l2", "total_l2", "bias"):
        return row_factor_cause(finding)
    output, wrong = finding.output, finding.wrong[:_SAMPLE]
    place = output.storage_index(wrong)
    if (output.bits[place] == initial[place]).mean() >= _MOST:
        return "the wrong elements hold what was there before the launch: nothing wrote them"
    if wrong.size < _ENOUGH:
        return None
    got = output.bits_at(wrong)
    if np.isfinite(output.values_at(wrong)).all() and not output.values_at(wrong).any():
        return "the wrong elements are all 0"
    if output.reference.number_format == E2M1 and _fits(output, wrong, got, wrong ^ 1):
        return "each wrong code is its neighbour's: the two nibbles of a byte are swapped"
    return _shift(output, wrong, got) or row_factor_cause(finding)


def _shift(output: Output, wrong: Indices, got: npt.NDArray[np.unsignedinteger]) -> str | None:
    """Return the sentence for values that belong some elements or one row away."""
    columns = output.reference.columns
    for distance, what in (
        (columns, "the next row"),
        (-columns, "the previous row"),
        (1, "the next column"),
        (-1, "the previous column"),
    ):
        if _fits(output, wrong, got, wrong + distance):
            return f"the wrong elements hold what belongs to {what}: an index is off by one"
    return None


def _fits(
    output: Output,
    wrong: Indices,
    got: npt.NDArray[np.unsignedinteger],
    source: Indices,
) -> bool:
    """Return whether most wrong elements equal what is expected at `source`, and it varies."""
    inside = (source >= 0) & (source < output.reference.exact.size)
    if inside.sum() < _ENOUGH:
        return False
    there = output.expected_bits_at(source[inside])
    here = output.expected_bits_at(wrong[inside])
    moved = there != here
    return bool(moved.any() and (there[moved] == got[inside][moved]).mean() >= _MOST)


_BLOCK = 16  # elements that share one nvfp4 scale: the natural unit of a mistake here
_SHOWN = 4
_DENSE = 0.5


def describe_pattern(wrong: Indices, rows: int, columns: int) -> str:
    """Return in one phrase where `wrong`, ascending flat indices, lies in a 2-D tensor."""
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
