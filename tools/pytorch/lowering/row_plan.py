"""What a kernel that makes rows computes: the rows, their reductions, and what is stored."""

from dataclasses import dataclass, replace
from typing import Literal

from .body import Body
from .buffers import Buffer
from .cuda_types import computed
from .own_operators import PackedCodes
from .reduction import Reduction
from .row_schedule import Schedule
from .sizes import Shape
from .values import Index, Pointwise, Value, Viewed

_E4M3_MAX = 448.0


class NotRowByRowError(Exception):
    """The function is not made row by row; lower it kernel by kernel."""


@dataclass(frozen=True, eq=False)
class RowResult:
    """A result of a reduction over the row that a thread works on."""

    reduction: Reduction
    dtype: str
    cost: int = 1

    @property
    def shape(self) -> Shape:
        """The shape of the reduction's results."""
        return self.reduction.shape

    @property
    def sources(self) -> frozenset[Buffer]:
        """The buffers that the reduced elements may be read from."""
        return self.reduction.value.sources

    def at(self, body: Body, index: Index) -> str:
        """Return its name.

        Raises:
            NotRowByRowError: `index` is in another row.
        """
        given = body.given.get(self)
        if given is None or not body.is_same_place(given[0], index):
            raise NotRowByRowError("a result of one row is needed in another")
        return given[1]


Part = Literal["row", "codes", "groups", "turned groups", "number"]
"""What an output has of each row: all of it, a byte for every two elements, a number for each of
its groups (turned: the groups are the first dimension), or one number."""


@dataclass(frozen=True)
class RowOutput:
    """What is stored where."""

    value: Value
    buffer: Buffer
    part: Part = "row"
    valid: Value | None = None
    """Rows of which this is false are left as they are; None if all are written."""

    @property
    def elements(self) -> Shape:
        """The shape of what is stored, or of what is packed there."""
        value = self.value
        return value.rounded.shape if isinstance(value, PackedCodes) else self.buffer.shape

    @property
    def before_rounding(self) -> Value:
        """What is stored, without a rounding that the store does: pairs are rounded at once."""
        value = self.value
        if self.part == "codes" and isinstance(value, PackedCodes):
            return value.rounded
        if not (isinstance(value, Pointwise) and value.rounds and value.dtype == self.buffer.dtype):
            return value
        (operand,) = value.operands
        if computed(operand.dtype) != "float":
            return value
        return _unclamped(operand) if value.dtype == "float8_e4m3fn" else operand


def _unclamped(value: Value) -> Value:
    """Return `value` without a clamp to the range of e4m3: a store saturates, and keeps NaN."""
    if isinstance(value, Viewed):
        return replace(value, base=_unclamped(value.base))
    if isinstance(value, Pointwise) and value.clamps == (-_E4M3_MAX, _E4M3_MAX):
        return value.operands[0]
    return value


@dataclass(frozen=True)
class RowPlan:
    """Rows, what is reduced in each, and what is stored."""

    outer: Shape
    inner: Shape
    results: tuple[tuple[RowResult, ...], ...]
    """The results of each reduction over whole rows, in their order."""
    groups: tuple[tuple[RowResult, ...], ...]
    """The results of each reduction over groups of neighbours in a row."""
    outputs: tuple[RowOutput, ...]
    schedule: Schedule
    valid: Value | None = None
    """A number for each row: whether it is made at all."""

    @property
    def group(self) -> int:
        """The elements of a group; 0 without groups."""
        return self.groups[0][0].reduction.inner[0].literal or 0 if self.groups else 0

    def of(self, *parts: Part) -> list[RowOutput]:
        """Return the outputs that have one of these parts of each row."""
        return [output for output in self.outputs if output.part in parts]
