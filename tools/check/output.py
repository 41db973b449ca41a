"""One output of a candidate beside its reference, and the finding that a gate makes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kopt.kernels.wide_work import run_wide

from .judged_rows import JudgedRows
from .number_formats import E2M1, decode_bits, poison_bits, show, storage_bits
from .reference import Reference

T = TypeVar("T")

Indices = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
PART_ELEMENTS = 1 << 20  # compared by one thread at once


@dataclass(frozen=True)
class Output:
    """A candidate's tensor as it left the device."""

    name: str
    reference: Reference
    array: npt.NDArray[Any]
    """Storage shape and dtype; of the judged rows alone where some are not."""
    judged: JudgedRows | None = None
    """None: all rows are judged."""

    @cached_property
    def bits(self) -> npt.NDArray[Any]:
        """Flat storage as unsigned integers."""
        return storage_bits(self.array)

    @cached_property
    def differing(self) -> Indices:
        """Ascending logical indices whose bits are not those of the correctly rounded result.

        Elements that must not be written are left out: they are the `untouched` gate's.
        """
        if self.reference.offsets is not None:
            different = self.bits != self.reference.bits
            if self.reference.written is not None:
                different &= self.reference.written
            return np.flatnonzero(different[self.reference.offsets])
        stored = self._stored_differing()
        if self.reference.number_format != E2M1:
            return stored
        both = (2 * stored[:, None] + np.arange(2)).reshape(-1)
        codes_differ: npt.NDArray[np.bool_] = self.bits_at(both) != self.expected_bits_at(both)
        return both[codes_differ]

    def _stored_differing(self) -> Indices:
        """Return the places in storage of elements that must be written and differ."""
        bits, right, written = self.bits, self.reference.bits, self.reference.written

        def find(part: slice) -> Indices:
            different = bits[part] != right[part]
            if written is not None:
                different &= written[part]
            places: Indices = np.flatnonzero(different) + part.start
            return places

        starts = range(0, max(bits.size, 1), PART_ELEMENTS)
        parts = [slice(start, start + PART_ELEMENTS) for start in starts]
        found: Indices = np.concatenate(run_wide(find, parts))
        return found

    def storage_index(self, indices: Indices) -> Indices:
        """Return where logical elements lie in the flat storage; codes share their byte."""
        if self.reference.offsets is not None:
            return self.reference.offsets[indices]
        return indices >> 1 if self.reference.number_format == E2M1 else indices

    def is_written(self, indices: Indices) -> npt.NDArray[np.bool_]:
        """Return for logical elements whether they must be written."""
        if self.reference.written is None:
            return np.ones(indices.shape, dtype=np.bool_)
        return self.reference.written[self.storage_index(indices)]

    def bits_at(self, indices: Indices) -> npt.NDArray[Any]:
        """Return the candidate's bits of logical elements; e2m1 as codes 0 to 15."""
        return self._gather(self.bits, indices)

    def expected_bits_at(self, indices: Indices) -> npt.NDArray[Any]:
        """Return the correctly rounded bits of logical elements."""
        return self._gather(self.reference.bits, indices)

    def values_at(self, indices: Indices) -> npt.NDArray[np.float64]:
        """Return the candidate's values of logical elements."""
        return decode_bits(self.bits_at(indices), self.reference.number_format)

    def expected_values_at(self, indices: Indices) -> npt.NDArray[np.float64]:
        """Return the correctly rounded values of logical elements."""
        return decode_bits(self.expected_bits_at(indices), self.reference.number_format)

    def _gather(self, bits: npt.NDArray[Any], indices: Indices) -> npt.NDArray[Any]:
        stored = bits[self.storage_index(indices)]
        if self.reference.number_format != E2M1:
            return stored
        shift = ((indices & 1) << 2).astype(np.uint8)
        return (stored >> shift) & np.uint8(0xF)


def initial_bits(output: Output, poison: int, before: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return what each stored element held before the launch, flat: `before`, else the poison."""
    if before is not None:
        return storage_bits(before)
    return np.broadcast_to(poison_bits(output.bits.dtype, poison), output.bits.shape)


def in_parts(indices: Indices, does: Callable[[Indices], T]) -> list[T]:
    """Return what `does` gives for parts of `indices`, at least one, in order; by several threads.

    An output of 2^25 elements is off in the last bit almost everywhere, and every pass over it
    would take seconds and several temporaries of 256 MiB.
    """
    starts = range(0, max(indices.size, 1), PART_ELEMENTS)
    parts = [slice(start, start + PART_ELEMENTS) for start in starts]
    return run_wide(lambda part: does(indices[part]), parts)


def outside_window(
    output: Output,
    indices: Indices,
    relative: float,
    more: Callable[[Values], Values | float] = lambda _: 0.0,
) -> Indices:
    """Return which of `indices` are further from the exact value than rounding explains.

    Args:
        output: The tensor.
        indices: Logical elements whose bits are not those of the correctly rounded result.
        relative: Share of the exact value that they may be off, on top of the oracle's slack.
        more: From exact values to what they may be off besides.
    """

    def refuse(part: Indices) -> Indices:
        exact = output.reference.exact_at(part)
        allowed = relative * np.abs(exact) + more(exact) + output.reference.slack_at(part)
        # Not `>`: the error of an infinity may be NaN, which is no reason to accept.
        with np.errstate(invalid="ignore"):
            accepted = np.abs(output.values_at(part) - exact) <= allowed
        # An infinite exact value allows an infinite error; right bits are not among `indices`.
        refused: Indices = part[~accepted | ~np.isfinite(exact)]
        return refused

    return np.concatenate(in_parts(indices, refuse))


@dataclass(frozen=True)
class Finding:
    """What a gate refused in one output."""

    gate: str
    output: Output = field(repr=False)
    wrong: Indices
    """Ascending flat indices of the wrong elements, at least one; logical, or storage elements
    where the gate is `untouched`."""
    expected: str
    got: str
    note: str
    """One sentence: which bound was passed, and by how much."""
    shown: int
    """Flat index of the element that `expected` and `got` belong to: the first wrong one, or the
    worst where none is wrong by itself."""
    stray_row: int | None = None
    """A row of the whole output that was not judged, in which something is wrong whatever the right
    answer is; `wrong` and `shown` say nothing then."""

    @property
    def tensor(self) -> str:
        """Name of the output."""
        return self.output.name


def finding_in_row(output: Output, gate: str, row: int, got: str, note: str) -> Finding:
    """Return a finding of a row that was not judged."""
    nothing: Indices = np.zeros(0, dtype=np.int64)
    return Finding(gate, output, nothing, "a value", got, f"{note} in row {row}", 0, row)


def finding_at_first(output: Output, gate: str, wrong: Indices, note: str) -> Finding | None:
    """Return a finding that shows the first wrong element beside the correctly rounded one.

    None where nothing is wrong.
    """
    return finding_at(output, gate, wrong, note, int(wrong[0])) if wrong.size else None


def finding_at(output: Output, gate: str, wrong: Indices, note: str, shown: int) -> Finding:
    """Return a finding that shows the element `shown` beside the correctly rounded one."""
    at, number_format = np.asarray([shown]), output.reference.number_format
    return Finding(
        gate=gate,
        output=output,
        wrong=wrong,
        expected=show(output.expected_bits_at(at)[0], number_format),
        got=show(output.bits_at(at)[0], number_format),
        note=note,
        shown=shown,
    )
