"""ldmatrix, stmatrix and movmatrix, with what the PTX ISA says that each lane gets.

A matrix is 8x8 words of 16 bits; lanes 8 * m to 8 * m + 7 have the rows of matrix m in their shared
memory, and lane 4 * r + c holds the elements 2 * c and 2 * c + 1 of row r.
"""

import numpy as np

from .sim_run import Array
from .warp_rows import LANES, TILE, WarpRow

_RANDOM = np.random.default_rng(8)


def _matrices(count: int) -> Array:
    """Return matrices by number, row and column."""
    return _RANDOM.integers(0, 1 << 16, (count, 8, 8), dtype=np.uint16)


def _held(matrix: Array) -> Array:
    """Return what lanes hold of a matrix: two elements each, as words."""
    return matrix.reshape(LANES, 2).copy().view(np.uint32).ravel()


def _in_rows(matrices: Array) -> list[Array]:
    """Return what lanes have in their shared memory: four words each; without a row, zeros."""
    words = np.zeros((LANES, 4), np.uint32)
    rows = matrices.reshape(-1, 8).copy().view(np.uint32)
    words[: len(rows)] = rows
    return list(words.T.copy())


def _registers(count: int, first: int) -> str:
    return "{" + ", ".join(f"%{first + n}" for n in range(count)) + "}"


def _load(count: int, how: str) -> WarpRow:
    matrices = _matrices(count)
    name = f"ldmatrix.sync.aligned.m8n8.x{count}{how}.shared.b16"
    text = f"{name} {_registers(count, 0)}, [%{count}];"
    given = [one.T if how else one for one in matrices]
    results = tuple(("r", _held(one)) for one in given)
    return WarpRow(name, text, (), results, tile=tuple(_in_rows(matrices)))


def _store(count: int, how: str) -> WarpRow:
    matrices = _matrices(count)
    name = f"stmatrix.sync.aligned.m8n8.x{count}{how}.shared.b16"
    text = f"{name} [%{count}], {_registers(count, 0)};"
    sources = tuple(("r", _held(one)) for one in matrices)
    stored = np.stack([one.T if how else one for one in matrices])
    before = tuple(np.zeros(LANES, np.uint32) for _ in range(4))
    results = tuple((TILE, word) for word in _in_rows(stored))
    return WarpRow(name, text, sources, results, least_arch=90, tile=before)


def _transpose() -> WarpRow:
    (matrix,) = _matrices(1)
    name = "movmatrix.sync.aligned.m8n8.trans.b16"
    results = (("r", _held(matrix.T)),)
    return WarpRow(name, f"{name} %0, %1;", (("r", _held(matrix)),), results)


MATRIX_ROWS = (
    *(_load(count, how) for count in (1, 2, 4) for how in ("", ".trans")),
    *(_store(count, how) for count in (1, 2, 4) for how in ("", ".trans")),
    _transpose(),
)
