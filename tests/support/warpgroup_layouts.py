"""Where the elements of wgmma lie in registers and in shared memory, element by element.

Source:
    PTX ISA, section 9.7.15.5 (Register Fragments and Shared Memory Matrix Layouts), its figures.
"""

from dataclasses import dataclass

import numpy as np

from .sim_run import Array

THREADS, PLACE_BYTES = 128, 40 << 10
SWIZZLES = {16: 0, 128: 1, 64: 2, 32: 3}
"""What a descriptor has for a pattern whose rows are so many bytes long; 16: no swizzle."""


@dataclass(frozen=True)
class Layout:
    """How one matrix lies in shared memory, by lines (rows of A, columns of B) and k."""

    swizzle: int = 128
    """Bytes of a row of the pattern; 16: no swizzle."""
    transposed: bool = False
    """Neighbours lie along the lines, not along k."""
    step: int = 0
    """How many times 32 bytes along k the matrix begins behind the pattern."""
    begin: int = 0
    """Where the pattern begins, in units of 128 bytes behind 1024."""

    def strides(self, lines: int) -> tuple[int, int]:
        """Return the leading and the stride byte offset that the tile has."""
        if self.transposed:
            groups = -(-lines * 2 // self.swizzle)
            if self.swizzle == 16:
                return groups * 128, 128
            return 16 * self.swizzle, 8 * self.swizzle
        return (-(-lines // 8) * 128, 128) if self.swizzle == 16 else (16, 8 * self.swizzle)

    def place(self, line: int, k: int, item: int, lines: int) -> int:
        """Return the offset of an element from the beginning of the pattern, in bytes."""
        leading, stride = self.strides(lines)
        wide = self.swizzle // 16
        if self.transposed:
            cell, rest = divmod(line * item, 16)
            row, group, eight = k % 8, cell // wide, k // 8
            first = group * stride + eight * leading
            if self.swizzle > 16:
                first = group * leading + eight * stride
            cell %= wide
        else:
            cell, rest = divmod(k * item, 16)
            cell += 2 * self.step
            row, first = line % 8, line // 8 * stride
            if self.swizzle == 16:
                first, cell = first + cell * leading, 0
        turned = cell ^ (row * self.swizzle // 128) if wide > 1 else 0
        return first + row * self.swizzle + turned * 16 + rest

    def descriptor(self, lines: int) -> int:
        """Return the descriptor for a place that begins at shared address 0."""
        leading, stride = self.strides(lines)
        start = self.begin * 128 + 32 * self.step
        fields = ((start, 0), (leading, 16), (stride, 32))
        bits = sum((value & 0x3FFFF) >> 4 << first for value, first in fields)
        return bits | self.begin << 49 | SWIZZLES[self.swizzle] << 62


PLAIN = Layout()
"""Rows of 128 bytes along k, swizzled."""


def _sum_places(columns: int) -> Array:
    """Return row and column of sum i of each thread: (128, columns / 2, 2)."""
    found = np.empty((THREADS, columns // 2, 2), np.int64)
    for thread in range(THREADS):
        warp, lane = divmod(thread, 32)
        for i in range(columns // 2):
            found[thread, i] = (
                warp * 16 + lane // 4 + (8 if i % 4 >= 2 else 0),
                (lane % 4) * 2 + (i // 4) * 8 + i % 2,
            )
    return found


def registers_of_sums(matrix: Array) -> Array:
    places = _sum_places(matrix.shape[1])
    return matrix[places[..., 0], places[..., 1]].copy().view(np.uint32)


def registers_of_a(matrix: Array) -> Array:
    """Return the four registers of A of each thread: neighbours along k, rows 8 apart, then k."""
    each = 4 // matrix.itemsize
    found = np.empty((THREADS, 4, each), matrix.dtype)
    for thread in range(THREADS):
        warp, lane = divmod(thread, 32)
        for register in range(4):
            row = warp * 16 + lane // 4 + 8 * (register in (1, 3))
            first = (lane % 4) * each + (4 * each if register >= 2 else 0)
            found[thread, register] = matrix[row, first : first + each]
    return found.view(np.uint32).reshape(THREADS, 4)


def in_memory(matrix: Array, layout: Layout) -> Array:
    """Return the bytes of a tile that holds `matrix`, given by line and k."""
    lines, depth = matrix.shape
    found = np.zeros(PLACE_BYTES, np.uint8)
    item, parts = matrix.itemsize, matrix.copy().view(np.uint8).reshape(lines, depth, -1)
    for line in range(lines):
        for k in range(depth):
            place = layout.begin * 128 + layout.place(line, k, item, lines)
            found[place : place + item] = parts[line, k]
    return found
