"""A whole graph as one kernel: each row is read once, kept in registers, reduced and written.

It serves functions whose outputs are made row by row: norms, softmax, losses and quantisation of a
row, and pointwise functions. Any other is refused here and lowered kernel by kernel.
"""

from dataclasses import dataclass, field, replace

from .body import Body
from .buffers import Buffer, Grid
from .own_operators import WrittenWhere
from .program import MAX_SOURCES, LoweredProgram, Writer
from .reduction import Reduction
from .row_body import RowBody
from .row_kernel import write_rows
from .row_plan import NotRowByRowError, RowOutput, RowPlan, RowResult
from .row_schedule import RowSizes, conditions, tried_values
from .row_shapes import RowShapes
from .short_packs import refuse_short_packs
from .sizes import ONE, Shape
from .values import Stored, Value

_SHORT, _LONG = 32, 1 << 16
"""Elements of a row up to which a thread is enough for it, and from which on few rows leave most of
a GPU idle."""
_TOO_LONG = 1 << 30
"""Elements of a row from which on their places, rounded up to packs, may not fit in 32 bits."""
_FEW = 128
"""Rows that are few."""
_MOST_COST = 160
"""Cost of an element from which on it is made by operator: nested expressions are followed by
recursion, and what is shared once for each use."""
_TILE = 1024
"""Elements that a function without reductions makes as if they were a row, at least."""


@dataclass(eq=False)
class RowProgram(LoweredProgram):
    """A program that may have one kernel only, in which a group of threads makes a row."""

    results: list[tuple[RowResult, ...]] = field(default_factory=list[tuple[RowResult, ...]])
    """The results of each reduction; a later one may be computed from those before it."""
    outputs: list[RowOutput] = field(default_factory=list[RowOutput])
    note: str = "one kernel, in which ROW threads make each row"

    def kernel(self, what: str, write: Writer, origin: object = None) -> None:
        """Refuse a kernel of its own."""
        del write, origin
        raise NotRowByRowError(f"{what} needs a kernel of its own")

    def scratch(self, label: str, dtype: str, shape: Shape) -> Buffer:
        """Refuse a result in memory."""
        raise NotRowByRowError(f"{label} needs memory")

    def body(self) -> Body:
        """Return the empty body of a kernel whose loads are of several elements each."""
        return RowBody()

    def index_type(self, body: Body) -> str:
        """Return that positions are wide, so that no count of rows is too large."""
        del body
        return "using Index = op::Wide;"

    def realise(self, value: Value, into: Buffer | None = None) -> Stored:
        """Refuse a result in memory, but for what is there already."""
        if into is None and isinstance(value, Stored):
            return value
        raise NotRowByRowError("a result on the way is needed in memory")

    def shared(self, value: Value) -> Value:
        """Return `value`: a thread computes it again, or the compiler keeps it."""
        return value

    def output(self, value: Value, into: Buffer) -> Value:
        """Note an output; its readers take it from registers.

        Raises:
            NotRowByRowError: It is computed by too many operations.
        """
        self._refuse_long(value)
        valid = value.valid if isinstance(value, WrittenWhere) else None
        stored = value.base if isinstance(value, WrittenWhere) else value
        self.outputs.append(RowOutput(stored, into, valid=valid))
        return value

    def once(self, value: Value) -> Value:
        """Return `value`: see `shared`."""
        return value

    def at_hand(self, value: Value) -> Value:
        """Return `value`: see `shared`."""
        return value

    def limited(self, value: Value) -> Value:
        """Return `value`: see `shared`."""
        return value

    def reduced_in_row(self, reduction: Reduction, name: str) -> tuple[Value, ...]:
        """Return results that every thread of the row has in registers."""
        del name
        self._refuse_long(reduction.value)
        rank = len(reduction.value.shape)
        if reduction.dims != tuple(range(rank - len(reduction.dims), rank)):
            raise NotRowByRowError("a reduction is not along the last dimensions")
        found = tuple(RowResult(reduction, dtype) for dtype in reduction.dtypes)
        self.results.append(found)
        return found

    def _refuse_long(self, value: Value) -> None:
        if value.cost > _MOST_COST:
            raise NotRowByRowError(f"an element takes {value.cost} operations")

    def write(self) -> None:
        """Write the kernel.

        Raises:
            NotRowByRowError: The outputs and reductions do not have the same rows.
        """
        plan = self._plan()
        sources = {one for output in self.outputs for one in output.value.sources}
        if len(sources) > MAX_SOURCES:
            raise NotRowByRowError(f"it reads {len(sources)} tensors")

        def write(body: Body) -> Grid:
            assert isinstance(body, RowBody)
            grid = write_rows(plan, body)
            refuse_short_packs(plan, body, self.sizes)
            return grid

        super().kernel("rows", write)

    def _plan(self) -> RowPlan:
        """Return the rows: those of the longest reduction, or the outputs' with groups in them."""
        reductions = [results[0].reduction for results in self.results]
        longest = max(reductions, key=lambda one: self.sizes.elements(one.inner), default=None)
        if longest is not None:
            try:
                return self._with_rows(longest.outer, longest.inner)
            except NotRowByRowError as error:
                refusal = error
            outer, inner = self._rows_of_outputs()
            if self.sizes.elements(inner) <= self.sizes.elements(longest.inner):
                raise refusal
            return self._with_rows(outer, inner)
        return self._with_rows(*self._rows_of_outputs())

    def _with_rows(self, outer: Shape, inner: Shape) -> RowPlan:
        same_shape = self.sizes.same_shape
        groups = [one for one in self.results if not same_shape(one[0].reduction.inner, inner)]
        whole = [one for one in self.results if one not in groups]
        rows, length = self.sizes.elements(outer), self.sizes.elements(inner)
        if length >= _TOO_LONG:
            raise NotRowByRowError("places in a row do not fit in 32 bits")
        if whole and length <= _SHORT:
            raise NotRowByRowError("rows are short")
        schedule = self.schedule.fitting(bool(whole), length)
        is_few = rows < _FEW and not schedule.is_split
        if is_few and length >= (_LONG if whole else _TILE):
            raise NotRowByRowError("rows are few and long")
        for results in whole:
            if not same_shape(results[0].reduction.outer, outer):
                raise NotRowByRowError("reductions have rows of different lengths")
        table = RowShapes(self.sizes, outer, inner)
        for results in groups:
            table.refuse_group(results[0].reduction, groups[0][0].reduction)
        count = groups[0][0].reduction.outer[-1] if groups else None
        outputs = tuple(replace(one, part=table.part(one, count)) for one in self.outputs)
        valid = table.valid(self.outputs, bool(whole))
        in_place = any(output.buffer.kind == "inout" for output in self.outputs)
        found = RowSizes(length, bool(whole), bool(groups), in_place)
        self.tune = tried_values(found, schedule)
        self.conditions = conditions(found, schedule)
        self.schedule = schedule
        return RowPlan(outer, inner, tuple(whole), tuple(groups), outputs, schedule, valid)

    def _rows_of_outputs(self) -> tuple[Shape, Shape]:
        """Return the extents of the rows and of what is in a row, where no reduction tells them."""
        shapes = [one.elements for one in self.outputs]
        shape = max(shapes, key=self.sizes.elements)
        narrow = [len(one) for one in shapes if self.sizes.same_shape(one, shape[: len(one)])]
        if min(narrow) < len(shape):  # another output has a number for each row
            return shape[: min(narrow)], shape[min(narrow) :]
        suffixes = (shape[place:] for place in reversed(range(len(shape))))
        long = (one for one in suffixes if self.sizes.elements(one) >= _TILE)
        inner = next(long, shape) or (ONE,)
        return shape[: len(shape) - len(inner)], inner
