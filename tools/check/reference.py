"""What one output must hold, in the flat form that the gates read, made from an oracle's Expected.

A gate never walks over a whole tensor: an element with the bits of the correctly rounded result is
right by definition, so only the differing ones are looked at, and sums over the rest are taken
once, here. That makes a right kernel cheap to confirm, and lets `exact` stay on disk.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError
from kopt.kernels.narrowing import keep_exact
from kopt.kernels.oracle import Expected, ScaledBy
from kopt.kernels.problem import Problem, TensorSpec
from kopt.kernels.wide_work import run_wide, slices

from .number_formats import E2M1, HALF_FORMATS, decode_bits, half_ulp, storage_bits

CHUNK_ELEMENTS = 1 << 20  # bounds the temporaries of the row sums to some 10 MB
_BLOCK_ELEMENTS = 1 << 16  # of which a core's own cache holds a few float64 temporaries


@dataclass(frozen=True)
class RowNoise:
    """Per row of an output of 16 bits, what rounding alone leaves. All (rows,) float64."""

    correct_sq: npt.NDArray[np.float64]
    """Sum of (rounded - exact)^2."""
    ulp_sq: npt.NDArray[np.float64]
    """Sum of ulp(exact)^2; a twelfth of it is what rounding leaves to values spread evenly."""
    ulp_max: npt.NDArray[np.float64]
    """ulp of the row's largest value."""


@dataclass(frozen=True)
class Reference:
    """One output tensor's expected contents; every array but `unit` is flat."""

    number_format: str
    """The tensor's dtype, or e2m1 for packed codes."""
    shape: tuple[int, ...]
    """Logical shape: that of the oracle's `exact`."""
    rows: int
    """Leading dimensions up to the row axis, multiplied; columns are the rest."""
    exact: npt.NDArray[np.floating[Any]]
    """Logical order; float32 where its range suffices: its 2^-24 is far below every window."""
    bits: npt.NDArray[Any]
    """Storage order: the correctly rounded result as unsigned integers."""
    written: npt.NDArray[np.bool_] | None
    """Storage order; None where every element must be written."""
    offsets: npt.NDArray[np.int64] | None
    """Where each logical element lies in storage; None for storage order."""
    scaled_by: ScaledBy | None
    bit_exact: bool
    slack: npt.NDArray[np.floating[Any]] | None
    unit: npt.NDArray[np.float64]
    """Broadcasts to `shape`."""
    noise: RowNoise | None
    """For bfloat16 and float16 outputs without `bit_exact`."""
    slack_deviations: float | None = None
    """Standard deviations of honest errors that `slack` is; None: it is no statistic."""
    one_rounding: bool = False
    """Whether each element must be the rounding of a value within `slack` of the exact one."""

    @property
    def columns(self) -> int:
        """Logical elements of one row."""
        return prod(self.shape) // max(self.rows, 1)

    def slack_at(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64] | float:
        """Return the absolute slack of logical elements, 0.0 where the oracle gave none."""
        return 0.0 if self.slack is None else self.slack[indices].astype(np.float64)

    def exact_at(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the exact values of logical elements."""
        return self.exact[indices].astype(np.float64)

    def unit_at(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the real value of one unit of `exact` at logical elements."""
        if self.unit.size == 1:
            return np.broadcast_to(self.unit.reshape(()), indices.shape)
        shape = self.shape or (1,)  # numpy finds no place in an array without axes
        return np.broadcast_to(self.unit, shape)[np.unravel_index(indices, shape)]


def make_reference(problem: Problem, name: str, expected: Expected) -> Reference:
    """Return `expected` of the output `name` in the gates' form.

    Raises:
        ToolError: The oracle contradicts itself: sizes that do not fit, or NaN as the right answer.
    """
    spec = problem.tensor(name)
    bit_exact = expected.bit_exact or problem.tolerance == "exact"
    packed = spec.dtype == "uint8" and expected.exact.size == 2 * expected.rounded.size
    _refuse_contradictions(problem, spec, expected, packed)
    shape = expected.exact.shape
    written = np.ascontiguousarray(expected.written).reshape(-1)
    offsets = expected.logical_offsets
    exact = (_flat if spec.dtype == "float64" else _narrowed)(expected.exact)
    _refuse_nan(problem, name, exact)
    reference = Reference(
        number_format=E2M1 if packed else spec.dtype,
        shape=shape,
        rows=_row_count(spec, problem.row_axis, expected),
        exact=exact,
        bits=storage_bits(expected.rounded),
        written=None if bool(written.all()) else written,
        offsets=None if offsets is None else np.ascontiguousarray(offsets).reshape(-1),
        scaled_by=expected.scaled_by,
        bit_exact=bit_exact,
        slack=None if expected.slack is None else _narrowed(expected.slack),
        unit=np.asarray(expected.unit, dtype=np.float64),
        noise=None,
        slack_deviations=None if expected.slack is None else expected.slack_deviations,
        one_rounding=expected.one_rounding,
    )
    if spec.dtype in HALF_FORMATS and not bit_exact:
        return _with_noise(reference)
    return reference


def _refuse_contradictions(
    problem: Problem, spec: TensorSpec, expected: Expected, packed: bool
) -> None:
    where = f"{problem.folder / 'oracle.py'}: expected()[{spec.name!r}]"
    if expected.logical_offsets is None:
        logical = expected.rounded.size * (2 if packed else 1)
    else:
        logical = expected.logical_offsets.size
    if expected.one_rounding and (spec.dtype not in HALF_FORMATS or expected.bit_exact):
        raise ToolError(f"{where}: `one_rounding` is for outputs of 16 bits that are not bit-exact")
    if expected.exact.size != logical:
        raise ToolError(f"{where} has {expected.exact.size} exact values for {logical} elements")
    if expected.written.size != expected.rounded.size:
        raise ToolError(f"{where}: `written` and `rounded` differ in size")


def _refuse_nan(problem: Problem, name: str, exact: npt.NDArray[np.floating[Any]]) -> None:
    parts = slices(exact.size, CHUNK_ELEMENTS)
    if any(run_wide(lambda part: bool(np.isnan(exact[part]).any()), parts)):
        raise ToolError(
            f"{problem.folder / 'oracle.py'}: expected()[{name!r}] has NaN as an exact value, which"
            " no output could match"
        )


def _row_count(spec: TensorSpec, row_axis: str | None, expected: Expected) -> int:
    """Return how many rows the logical elements form: those of the last axis, if nothing names any.

    Permuted row-major storage (a transposed scale tensor) keeps its logical rows first, whatever
    its stored shape says, so only unpermuted shapes are read by axis name.
    """
    shape = expected.exact.shape
    named = row_axis in spec.shape and len(spec.shape) == len(shape)
    if (
        row_axis is not None
        and named
        and (expected.logical_offsets is None or spec.layout != "row_major")
    ):
        return prod(shape[: spec.shape.index(row_axis) + 1])
    return prod(shape[:-1])


def _flat(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    return np.ascontiguousarray(values).reshape(-1)


def _half_values(bits: npt.NDArray[Any], number_format: str) -> npt.NDArray[np.floating[Any]]:
    if number_format != "bfloat16":
        return decode_bits(np.ascontiguousarray(bits), number_format)
    # A bfloat16 is the upper half of the float32 with the same value.
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrowed(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Return flat `values`, as float32 unless a magnitude leaves float32's safe range."""
    flat = _flat(values)
    if flat.dtype == np.float32:
        return flat
    narrow = np.empty(flat.shape, dtype=np.float32)

    def fits(part: slice) -> bool:
        blocks = slices(part.stop, _BLOCK_ELEMENTS, part.start)
        return all(keep_exact(narrow[block], flat[block]) for block in blocks)

    return narrow if all(run_wide(fits, slices(flat.size, CHUNK_ELEMENTS))) else flat


def _with_noise(reference: Reference) -> Reference:
    """Return `reference` with the row sums, taken a few rows at a time."""
    rows, columns = reference.rows, reference.columns
    correct_sq, ulp_sq, ulp_max = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    logical = slice(None) if reference.offsets is None else reference.offsets
    rounded = reference.bits[logical].reshape(rows, columns)
    exact = reference.exact.reshape(rows, columns)
    written = None if reference.written is None else reference.written[logical]
    step = max(1, CHUNK_ELEMENTS // max(columns, 1))

    def add_up(part: slice) -> None:
        truth = exact[part].astype(np.float64)
        values = _half_values(rounded[part], reference.number_format)
        ulp = half_ulp(truth, reference.number_format)
        finite = np.isfinite(values)
        if finite.all():
            error = np.subtract(values, truth, out=truth)
        else:
            # What rounds to an infinity is judged by itself: it would widen the averages endlessly.
            ulp = np.where(finite, ulp, 0.0)
            error = np.subtract(values, truth, out=np.zeros_like(truth), where=finite)
        if written is not None:
            counted = written.reshape(rows, columns)[part]
            ulp, error = ulp * counted, error * counted
        correct_sq[part] = np.einsum("ij,ij->i", error, error)
        ulp_sq[part] = np.einsum("ij,ij->i", ulp, ulp)
        ulp_max[part] = ulp.max(axis=1, initial=0.0)

    run_wide(add_up, [slice(start, start + step) for start in range(0, rows, step)])
    return replace(reference, noise=RowNoise(correct_sq, ulp_sq, ulp_max))
