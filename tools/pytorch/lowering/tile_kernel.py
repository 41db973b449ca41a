"""The tiles of pointwise functions: neighbours of an output, whatever its dimensions, by a block.

A thread reads PACKS vectors, of all tensors together, before it computes. What lies side by side in
the last dimension, as the halves of a rotary embedding do, is computed by the same thread.
"""

from dataclasses import dataclass, replace

from .body import without_unused
from .buffers import Buffer
from .pack_loop import MadePack, write_loop
from .row_body import RowBody
from .row_plan import NotRowByRowError, RowOutput
from .row_schedule import Schedule
from .row_start import RowStart, Span
from .sizes import Shape, Size, product
from .values import Index

PACK = 8
"""PACKS counts so many elements as one pack, read in one vector or in several."""


@dataclass(frozen=True)
class Piece:
    """What is made of an output: all of it, or one of equal parts along its last dimension."""

    output: RowOutput
    start: Size
    """The first place of the part in the last dimension."""


@dataclass(frozen=True)
class Tile:
    """Outputs, or pieces of them, of one shape, that a range of blocks makes."""

    shape: Shape
    """The extents of each piece."""
    pieces: tuple[Piece, ...]

    @property
    def reads(self) -> frozenset[Buffer]:
        """The tensors that are read."""
        return frozenset(source for one in self.pieces for source in one.output.value.sources)


@dataclass(frozen=True)
class MadeTile:
    """The statements that make a tile."""

    label: str
    """The names of the outputs."""
    body: RowBody
    blocks: str
    """How many blocks make it, in the header's expressions."""

    @property
    def lines(self) -> list[str]:
        """The statements behind the definition of `tile`, the number of the block among its own."""
        return without_unused(self.body.lines)


def write_tile(tile: Tile, schedule: Schedule) -> MadeTile:
    """Return the statements of a block.

    Raises:
        NotRowByRowError: Its elements are not read and written by neighbours.
    """
    body, length = RowBody(is_tile=True), product(tile.shape)
    body.spans.append(tile.shape)
    body.begin()
    labels = [one.output.buffer.label for one in tile.pieces]
    made = [MadePack(one.output, f"made{number}") for number, one in enumerate(tile.pieces, 1)]
    places: list[str] = []

    def write(index: Index) -> None:
        for piece, one in zip(tile.pieces, made, strict=True):
            one.compute(body, index)
            places.append(_place(body, piece, index))

    def content() -> None:
        for one in made:
            one.begin(body)
        with body.lanes("col"):
            index = body.split("col", tile.shape)
            body.linear[index] = (tile.shape, "col")
            write(index)
        for one, place in zip(made, places, strict=True):
            body.line(one.store(body, place, schedule))

    span = Span(
        "((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC", length.code, "ITEMS", "(first %"
    )
    write_loop(body, span, schedule, content)
    if body.scattered:
        names = ", ".join(sorted(one.label for one in body.scattered))
        raise NotRowByRowError(f"{names} is not read by neighbours")
    body.written.update(one.output.buffer for one in tile.pieces)
    read = max(1, len(body.packs))
    packs = "PACKS" if read == 1 else f"(PACKS + {read - 1}) / {read}"
    items = f"{packs} * {PACK} / VEC"
    opening = RowStart(schedule, replace(span, items=items), ())
    body.lines[:0] = opening.lines(body, [one.output.buffer.dtype for one in tile.pieces])
    packs = "PACKS" if read == 1 else f"ceil_div(PACKS, {read})"
    blocks = f"ceil_div({length.header}, BLOCK * {packs} * {PACK})"
    return MadeTile(", ".join(dict.fromkeys(labels)), body, blocks)


def _place(body: RowBody, piece: Piece, index: Index) -> str:
    """Return where the pack that has the element at `index` begins in the output."""
    buffer = piece.output.buffer
    if piece.start.literal != 0:
        index = (*index[:-1], f"{index[-1]} + {piece.start.code}")
    place = body.base(body.position(index, buffer.shape))
    if place is None:
        raise NotRowByRowError(f"{buffer.label} is not written by neighbours")
    return place
