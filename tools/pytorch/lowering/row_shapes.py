"""Which part of each row a tensor is, and which reductions are over groups of a row."""

from collections.abc import Sequence
from dataclasses import dataclass

from .own_operators import PackedCodes
from .reduction import Reduction
from .row_plan import NotRowByRowError, Part, RowOutput
from .scale_tiles import fits
from .sizes import ONE, Shape, Size, SizeTable, product
from .values import Value

_LONGEST_GROUP, _LONGEST_OF_WIDE = 128, 64
"""Elements of a group that the threads of one warp have, of 4 and of 8 bytes each at most."""
_WIDE = ("float64", "int64")


@dataclass(frozen=True)
class RowShapes:
    """The extents of rows and of what is in a row."""

    sizes: SizeTable
    outer: Shape
    inner: Shape

    def refuse_group(self, one: Reduction, first: Reduction) -> None:
        """Refuse a reduction that is not over groups of neighbours in a row, all of one length.

        Raises:
            NotRowByRowError: It is not.
        """
        length = one.inner[0].literal if len(one.inner) == 1 else None
        touched = {buffer.dtype for buffer in one.value.sources}
        most = _LONGEST_GROUP if touched.isdisjoint(_WIDE) else _LONGEST_OF_WIDE
        is_fit = length is not None and length & (length - 1) == 0 and 1 < length <= most
        same = self.sizes.same_shape
        if not is_fit or not same(one.inner, first.inner) or len(self.inner) != 1:
            raise NotRowByRowError("reductions have rows of different lengths")
        if one.fold.needs_index or not same(one.outer[:-1], self.outer):
            raise NotRowByRowError("groups are not neighbours in a row")
        if not self.sizes.equal(product((one.outer[-1], *one.inner)), product(self.inner)):
            raise NotRowByRowError("groups do not fill a row")

    def valid(self, outputs: Sequence[RowOutput], reduces: bool) -> Value | None:
        """Return which rows are made, the same for all outputs; None for all rows.

        Raises:
            NotRowByRowError: Outputs have other rows than one another, or wait for one another.
        """
        first = outputs[0].valid
        if any(one.valid is not first for one in outputs):
            raise NotRowByRowError("outputs are written in different rows")
        if first is None:
            return None
        if reduces or not self.sizes.same_shape(first.shape, self._number):
            raise NotRowByRowError("what is left as it is are not rows that nothing reduces")
        return first

    def part(self, output: RowOutput, groups: Size | None) -> Part:
        """Return which part of each row an output is; `groups` is how many a row has, if any.

        Raises:
            NotRowByRowError: It is none.
        """
        found = self._of_row(output) or self._of_groups(output, groups)
        is_tiled = output.buffer.layout != "row_major"
        if found is None or (is_tiled and found != "groups"):
            raise NotRowByRowError("an output has other rows")
        if is_tiled and not fits(output.buffer, self.sizes):
            raise NotRowByRowError("places in tiles do not fit in 32 bits")
        return found

    def _of_row(self, output: RowOutput) -> Part | None:
        same, shape = self.sizes.same_shape, output.buffer.shape
        row = (*self.outer, *self.inner)
        if not same(shape, output.value.shape):
            return None
        if isinstance(output.value, PackedCodes):
            return "codes" if same(output.elements, row) else None
        if same(shape, row):
            return "row"
        is_number = same(shape, self.outer) or same(shape, self._number)
        return "number" if is_number else None

    def _of_groups(self, output: RowOutput, groups: Size | None) -> Part | None:
        same, value = self.sizes.same_shape, output.value.shape
        is_packed = isinstance(output.value, PackedCodes)
        if groups is None or is_packed or len(output.buffer.shape) != len(value):
            return None
        if same(value, (*self.outer, groups)):
            return "groups"
        return "turned groups" if same(value, (groups, *self.outer)) else None

    @property
    def _number(self) -> Shape:
        """The extents of one number for each row, which are as many as the row's."""
        return (*self.outer, *(ONE for _ in self.inner))
