"""Where the scale of a block lies in tiles of 128 rows x 4 blocks, padded to whole tiles."""

from .body import Body
from .buffers import Buffer
from .cuda_types import stored
from .program import store
from .sizes import SizeTable, ceil_div, literal, product
from .values import Index

_ROWS, _BLOCKS, _TILE = literal(128), literal(4), literal(512)
_MOST = 1 << 31
"""Bytes from which on places in a tensor do not fit in 32 bits."""


def store_scale(body: Body, buffer: Buffer, index: Index, value: str) -> None:
    """Write the statement that stores a number of a group, in the layout of the tensor."""
    if buffer.layout == "row_major":
        store(body, buffer, index, value)
        return
    body.written.add(buffer)
    place = body.load(buffer, _position(buffer, index))
    body.line(f"{place} = {stored(buffer.dtype, value)};")


def _position(buffer: Buffer, index: Index) -> str:
    """Return the place of the scale at `index` in tiles; every batch has its own."""
    *batch, rows, blocks = buffer.shape
    *places, row, block = index
    found = f"kopt::sf_128x4_offset(int({row}), int({block}), int({blocks.code}))"
    size = ceil_div(rows, _ROWS) * ceil_div(blocks, _BLOCKS) * _TILE
    for extent, place in reversed(list(zip(batch, places, strict=True))):
        found += f" + Index({place}) * {size.factor}"
        size = size * extent
    return found


def fits(buffer: Buffer, sizes: SizeTable) -> bool:
    """Return whether the places of all rows of one batch fit in 32 bits."""
    *_, rows, blocks = buffer.shape
    tiles = product((ceil_div(rows, _ROWS), ceil_div(blocks, _BLOCKS), _TILE))
    return max(sizes.values(tiles)) < _MOST
