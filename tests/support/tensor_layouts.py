"""Where elements lie in tensor memory, in registers and in shared memory, for tcgen05.

Source:
    PTX ISA, sections 9.7.16.2.3.1 (fragments of tcgen05.ld and .st, figures 183 to 187), 9.7.16.3
    and 9.7.16.4.1 (strides, descriptors), 9.7.16.10.4 (packing), 9.7.16.10.5 (layouts D and F).
"""

from dataclasses import dataclass

import numpy as np

from .sim_run import Array

LANES, PLACE_BYTES = 128, 40 << 10
MODES = {16: 0, 128: 2, 64: 4, 32: 6}
"""What a descriptor has for a pattern whose rows are so many bytes long; 16: no swizzle."""
SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Shapes of tcgen05.ld, and the registers of each at .x1."""


def fragment(shape: str, thread: int, register: int) -> tuple[int, int]:
    """Return lane and column of a register; of 16x32bx2 within its half of the columns."""
    row, quad = thread // 4, thread % 4
    match shape:
        case "32x32b":
            return thread, register
        case "16x64b":  # T0 T2 of the first row, T1 T3 of the ninth
            return row + (8 if thread & 1 else 0), 2 * register + (1 if thread & 2 else 0)
        case "16x128b":  # registers 0 of eight rows, registers 1 of the next eight
            half, block = register & 1, register >> 1
            return row + 8 * half, 4 * block + quad
        case "16x256b":  # pairs of registers lie side by side
            pair, block = register >> 1 & 1, register >> 2
            return row + 8 * pair, 8 * block + 2 * quad + (register & 1)
        case _:
            return thread % 16, register


def rows_of(shapes_m: int) -> Array:
    """Return the lane of each row of D, from its first lane on."""
    if shapes_m == LANES:
        return np.arange(LANES)
    quarters = [np.arange(16) + 32 * quarter for quarter in range(4)]
    return np.concatenate(quarters)


@dataclass(frozen=True)
class TensorLayout:
    """How one matrix lies in shared memory, by lines (rows of A, columns of B) and k."""

    swizzle: int = 128
    """Bytes of a row of the pattern; 16: no swizzle."""
    transposed: bool = False
    """Neighbours lie along the lines, not along k."""
    step: int = 0
    """How many times 32 bytes along k the matrix begins behind the pattern."""
    begin: int = 0
    """Where the pattern begins, in units of 128 bytes behind 1024."""

    def strides(self, lines: int, depth: int, item: int) -> tuple[int, int]:
        """Return the leading and the stride byte offset that the tile has."""
        eights = -(-lines // 8)
        if not self.transposed:
            return (eights * 128, 128) if self.swizzle == 16 else (16, 8 * self.swizzle)
        if self.swizzle == 16:
            return lines * item // 16 * 128, 128
        return depth * self.swizzle, 8 * self.swizzle

    def cells(self, line: Array, k: Array, extent: tuple[int, int, int]) -> tuple[Array, Array]:
        """Return where the 16 bytes with each element begin, and which of theirs it is."""
        item = extent[2]
        leading, stride = self.strides(*extent)
        each, wide = 16 // item, self.swizzle // 16
        along, across = (line, k) if self.transposed else (k, line)
        unit, element = divmod(along, each)
        unit = unit + (0 if self.transposed else 2 * self.step)
        eight, row = divmod(across, 8)
        if self.transposed and self.swizzle == 16:
            first, unit = unit * stride + eight * leading, 0 * unit
        elif self.transposed:
            first, unit = unit // wide * leading + eight * stride, unit % wide
        elif self.swizzle == 16:
            first, unit = eight * stride + unit * leading, 0 * unit
        else:
            first = eight * stride
        turned = unit ^ (row * self.swizzle // 128) if wide > 1 else 0 * unit
        return first + row * self.swizzle + turned * 16, element

    def descriptor(self, extent: tuple[int, int, int]) -> int:
        """Return the descriptor for a place that begins at shared address 0."""
        leading, stride = self.strides(*extent)
        start = self.begin * 128 + 32 * self.step
        fields = ((start, 0), (leading, 16), (stride, 32))
        bits = sum((value & 0x3FFFF) >> 4 << first for value, first in fields)
        return bits | 1 << 46 | self.begin << 49 | MODES[self.swizzle] << 61


def image_of(codes: Array, bits: int, layout: TensorLayout) -> Array:
    """Return the bytes of a matrix of codes (lines, k).

    Sixteen codes of 4 or 6 bits fill their 16 bytes from the front.
    """
    lines, depth = codes.shape
    extent = lines, depth, max(bits, 8) // 8
    image = np.zeros(PLACE_BYTES, np.uint8)
    line: Array = np.arange(lines, dtype=np.int64)[:, np.newaxis]
    k: Array = np.arange(depth, dtype=np.int64)[np.newaxis]
    first, element = layout.cells(line, k, extent)
    byte, shift = divmod(bits * element, 8)
    shifted = codes.astype(np.uint64) << shift.astype(np.uint64)
    for beyond in range(-(-(bits + 7) // 8)):
        part = (shifted >> np.uint64(8 * beyond) & np.uint64(255)).astype(np.uint8)
        np.bitwise_or.at(image, first + layout.begin * 128 + byte + beyond, part)
    return image


def in_tensor_memory(codes: Array, bits: int) -> Array:
    """Return the words (rows, columns) of A in tensor memory: elements side by side."""
    each = 32 // bits
    words = codes.astype(np.uint64).reshape(len(codes), -1, each) << (
        np.arange(each, dtype=np.uint64) * np.uint64(bits)
    )
    return np.asarray(words.sum(axis=2), np.uint32)
