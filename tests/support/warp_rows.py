"""Instructions of a whole warp, with the registers of 32 lanes and what each lane gets back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .ptx_rows import C_TYPES, CELL, DTYPES, HELPERS, cells_of
from .sim_run import Array, SimCase

LANES = 32
SOURCES, RESULTS = 10, 4
"""The most registers that an instruction has."""
TILE = "tile"
"""In the place of a constraint: a word of the lane's shared memory, read after the instruction."""


@dataclass(frozen=True)
class WarpRow:
    """One instruction with values; a register is an array with the value of each lane."""

    name: str
    text: str
    sources: tuple[tuple[str, Array], ...]
    """The constraint and the values of each register that it reads."""
    results: tuple[tuple[str, Array], ...]
    """The constraint and the expected values of each register that it writes."""
    error: float = 0.0
    """Relative or absolute, of elements of `element`; 0: the bits are the same."""
    element: type = np.float32
    """What the registers of the results hold."""
    least_arch: int = 80
    tile: tuple[Array, ...] = ()
    """16 bytes of shared memory for each lane, as four words; the last operand is their address."""


def _block(number: int, row: WarpRow) -> str:
    place = (f"in[{(number * SOURCES + n) * LANES} + lane]" for n in range(len(row.sources)))
    read = ", ".join(
        f'"{kind}"(taken<{C_TYPES[kind]}>({cell}))'
        for (kind, _), cell in zip(row.sources, place, strict=True)
    )
    kinds = [kind for kind, _ in row.results]
    registers = [n for n, kind in enumerate(kinds) if kind != TILE]
    declared = " ".join(f"{C_TYPES[kinds[n]]} r{n};" for n in registers)
    written = ", ".join(f'"={kinds[n]}"(r{n})' for n in registers)
    if row.tile:
        read += ", " * bool(read) + '"r"(static_cast<unsigned>(__cvta_generic_to_shared(mine)))'
    run = f'asm volatile("{row.text}" : {written} : {read} : "memory");'
    if row.tile:
        words = (f"in[{(number * SOURCES + SOURCES - 4 + n) * LANES} + lane]" for n in range(4))
        filled = " ".join(f"mine[{n}] = {word};" for n, word in enumerate(words))
        run = f"{filled} __syncwarp(); {run} __syncwarp();"
    kept = " ".join(
        f"out[{(number * RESULTS + n) * LANES} + lane]"
        f" = {f'mine[{n}]' if kind == TILE else f'kept(r{n})'};"
        for n, kind in enumerate(kinds)
    )
    return f"{{ {declared} {run} {kept} }}"


def warp_case(rows: Sequence[WarpRow]) -> SimCase:
    """Return one kernel of one warp that runs every row; `judge_warp` reads its results."""
    cells = np.zeros((len(rows), SOURCES, LANES), np.uint64)
    for number, row in enumerate(rows):
        for place, (_, values) in enumerate(row.sources):
            cells[number, place] = cells_of(values)
        for place, values in enumerate(row.tile):
            cells[number, SOURCES - 4 + place] = cells_of(values)
    blocks = "\n  ".join(_block(number, row) for number, row in enumerate(rows))
    source = (
        f'{HELPERS}extern "C" __global__ void k(const {CELL}* in, {CELL}* out) {{\n'
        "  __shared__ alignas(16) unsigned tile[128];\n"
        "  const int lane = threadIdx.x; unsigned* const mine = tile + lane * 5 % 32 * 4;\n"
        f"  for (int i = lane; i < {len(rows) * RESULTS * LANES}; i += {LANES}) out[i] = 0;\n"
        f"  __syncwarp();\n  {blocks}\n}}"
    )
    outputs = {"out": np.zeros(len(rows) * RESULTS * LANES, np.int64)}
    inputs = {"in": cells.ravel().view(np.int64)}
    return SimCase(source, inputs=inputs, outputs=outputs, block=(LANES, 1, 1))


def results_of(rows: Sequence[WarpRow], out: Array) -> dict[str, Array]:
    """Return the cells of each row, by its name."""
    found = out.reshape(len(rows), RESULTS, LANES)
    return {row.name: cells for row, cells in zip(rows, found, strict=True)}


def judge_warp(row: WarpRow, cells: Array) -> None:
    """Assert that the cells of a row's results hold what is expected of it."""
    for (kind, expected), found in zip(row.results, cells.view(np.uint64), strict=False):
        words = found.astype(f"u{np.dtype(DTYPES.get(kind, np.uint32)).itemsize}")
        if row.error == 0.0:
            np.testing.assert_array_equal(words, expected.view(words.dtype))
        else:
            values, wanted = (one.view(row.element).astype(float) for one in (words, expected))
            np.testing.assert_allclose(values, wanted, rtol=row.error, atol=row.error)
