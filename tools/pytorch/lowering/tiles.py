"""Pointwise functions of any shape as tiles: a kernel for each output, or one for all of them."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from kopt.kernels.expression_parser import MAX_TEXT_LENGTH

from .body import Body
from .buffers import Grid
from .joined import Joined
from .program import MAX_SOURCES, LoweredProgram, Writer
from .reduction import Reduction
from .row_plan import NotRowByRowError, RowOutput
from .row_schedule import tile_conditions, tried_tiles
from .rows import RowProgram
from .sizes import ONE, Size, SizeTable, literal, product
from .tile_kernel import Piece, Tile, write_tile
from .values import Pointwise, Value, converted
from .views import strided

_TOO_LONG = 1 << 30
"""Elements of a tensor from which on their places, rounded up to tiles, may not fit in 32 bits."""
_OF_A_RANGE = 50
"""Characters that a range of blocks adds to the grid's expression, beside the count of elements."""


@dataclass(eq=False)
class TileProgram(RowProgram):
    """A program without reductions, whose kernels read and write neighbours at once."""

    note: str = "tiles of BLOCK threads, each of which loads PACKS vectors before it computes"

    def index_type(self, body: Body) -> str:
        """Return the type of positions: as wide as the tensors need."""
        return LoweredProgram.index_type(self, body)

    def reduced_in_row(self, reduction: Reduction, name: str) -> tuple[Value, ...]:
        """Refuse a reduction."""
        del reduction
        raise NotRowByRowError(f"{name} reduces")

    def write(self) -> None:
        """Write the kernels.

        Raises:
            NotRowByRowError: An output is not pointwise, or a tensor is not read by neighbours.
        """
        tiles = _merged([self._tile(one) for one in self.outputs], self.sizes)
        grid = sum(len(product(one.shape).header) + _OF_A_RANGE for one in tiles)
        self.schedule = self.schedule.for_tiles(len(tiles) > 1 and grid <= MAX_TEXT_LENGTH)
        self.tune = tried_tiles(self.schedule)
        self.conditions = tile_conditions(self.schedule)
        launches = [tiles] if self.schedule.joins else [[one] for one in tiles]
        for one in launches:
            LoweredProgram.kernel(self, "tiles", self._writer(one))

    def _tile(self, output: RowOutput) -> Tile:
        value, buffer = output.value, output.buffer
        if buffer.kind == "inout" or not self.sizes.same_shape(value.shape, buffer.shape):
            raise NotRowByRowError(f"{buffer.label} is written in place, or padded")
        longest = max(self.sizes.values(product(value.shape)))
        if longest >= _TOO_LONG or len(value.sources) > MAX_SOURCES:
            raise NotRowByRowError(f"{buffer.label} is too long, or reads too much")
        start, pieces = literal(0), list[Piece]()
        parts = _parts(value, self.sizes) or (value,)
        for part in parts:
            pieces.append(Piece(RowOutput(part, buffer), start))
            start = start + (part.shape[-1] if part.shape else ONE)
        return Tile(parts[0].shape, tuple(pieces))

    def _writer(self, tiles: Sequence[Tile]) -> Writer:
        """Return what writes the kernel of these tiles, a range of blocks for each."""

        def write(body: Body) -> Grid:
            made = [write_tile(one, self.schedule) for one in tiles]
            made.sort(key=lambda one: -len(one.body.packs))  # the longest waits begin first
            ends = [" + ".join(one.blocks for one in made[: end + 1]) for end in range(len(made))]
            for number, one in enumerate(made):
                with ExitStack() as branch:
                    if len(made) > 1:
                        branch.enter_context(body.block(_branch(number, len(made))))
                        body.line(f"// {one.label}")
                    body.line(f"const int tile = blockIdx.x{f' - end{number}' if number else ''};")
                    body.lines += ["  " * (len(made) > 1) + line for line in one.lines]
                for buffer in one.body.buffers:
                    body.pointer(buffer)
                body.written |= one.body.written
                body.spans += one.body.spans
            numbers = tuple((f"end{number + 1}", text) for number, text in enumerate(ends[:-1]))
            bound = "BLOCK, MIN_BLOCKS" if self.schedule.is_bounded else "BLOCK"
            options = ("pdl: true",) if self.schedule.is_dependent else ()
            bounds = f"__launch_bounds__({bound}) "
            return Grid(ends[-1], "BLOCK", bounds, numbers=numbers, options=options)

        return write


def _branch(number: int, count: int) -> str:
    """Return what opens the branch of one of several ranges of blocks."""
    if number == count - 1:
        return "else"
    return f"{'else ' * (number > 0)}if (int(blockIdx.x) < end{number + 1})"


def _merged(tiles: Sequence[Tile], sizes: SizeTable) -> list[Tile]:
    """Return the tiles; those of one shape that read the same tensors become one."""
    found: list[Tile] = []
    for tile in tiles:
        for place, other in enumerate(found):
            if sizes.same_shape(tile.shape, other.shape) and not tile.reads.isdisjoint(other.reads):
                found[place] = replace(other, pieces=(*other.pieces, *tile.pieces))
                break
        else:
            found.append(tile)
    return found


def _parts(value: Value, sizes: SizeTable) -> tuple[Value, ...] | None:
    """Return what lies side by side along the last dimension of `value`, if it is equal parts."""
    if isinstance(value, Joined):
        extents = [one.shape[-1] for one in value.parts]
        is_last = value.dim == len(value.shape) - 1
        if is_last and all(sizes.equal(one, extents[0]) for one in extents):
            return tuple(converted(one, value.dtype, sizes) for one in value.parts)
        return None
    if not isinstance(value, Pointwise) or not value.shape:
        return None
    parts = [_parts(one, sizes) for one in value.operands]
    counts = {len(one): one[0].shape[-1] for one in parts if one is not None}
    if len(counts) != 1:
        return None
    ((count, extent),) = counts.items()
    operands = [
        given or _sliced(one, (count, extent), sizes)
        for one, given in zip(value.operands, parts, strict=True)
    ]
    shape = (*value.shape[:-1], extent)
    return tuple(
        replace(value, operands=tuple(one[part] for one in operands), shape=shape)
        for part in range(count)
    )


def _sliced(operand: Value, parts: tuple[int, Size], sizes: SizeTable) -> tuple[Value, ...]:
    """Return the parts of an operand along the last dimension; it itself where it is broadcast.

    Raises:
        NotRowByRowError: It is broadcast at some workloads only.
    """
    count, extent = parts
    if not operand.shape or operand.shape[-1].literal == 1:
        return (operand,) * count
    if not sizes.equal(operand.shape[-1], product([literal(count), extent])):
        raise NotRowByRowError("an operand is broadcast at some workloads only")
    last = len(operand.shape) - 1
    starts = [product([literal(part), extent]) for part in range(count)]
    return tuple(strided(operand, last, (start, extent, ONE)) for start in starts)
