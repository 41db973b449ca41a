"""Which part of each row a tensor is, and which reductions are over groups of a row."""

from dataclasses import dataclass

from .reduction import Reduction
from .row_plan import NotRowByRowError, Part, RowOutput
from .sizes import ONE, Shape, Size, SizeTable, product

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

    def part(self, output: RowOutput, groups: Size | None) -> Part:
        """Return which part of each row an output is; `groups` is how many a row has, if any.

        Raises:
            NotRowByRowError: It is none.
        """
        same, shape, value = self.sizes.same_shape, output.buffer.shape, output.value.shape
        number = (*self.outer, *(ONE for _ in self.inner))
        if same(shape, value):
            if same(shape, (*self.outer, *self.inner)):
                return "row"
            if same(shape, self.outer) or same(shape, number):
                return "number"
        if groups is not None and len(shape) == len(value):
            if same(value, (*self.outer, groups)):
                return "groups"
            if same(value, (groups, *self.outer)):
                return "turned groups"
        raise NotRowByRowError("an output has other rows")
