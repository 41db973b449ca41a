"""The table of empty kernels: every shape in its place."""

from itertools import product

from bench_launches import BLOCKS, GRIDS, EmptyTime, table


def test_a_row_is_a_grid_and_a_column_a_block() -> None:
    times = [
        EmptyTime(pdl, grid, threads, grid + threads / 1e4 + (0.5 if pdl else 0.0))
        for pdl, grid, threads in product((False, True), GRIDS, BLOCKS)
    ]
    lines = table(times).splitlines()
    assert len(lines) == 2 + 2 * len(GRIDS)
    assert lines[2].startswith("| off | 1 | 1.003 | 1.006 |")
    assert lines[-1].startswith("| on | 8,192 | 8192.503 |")
