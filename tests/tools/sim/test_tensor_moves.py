"""tcgen05.ld and .st give on the simulator what the PTX ISA says of each shape."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from support.cuda_sources import assert_nvcc_takes
from support.sim_run import Array, Sim
from support.tensor_moves import MOVE_ROWS, TensorMoveRow, move_results, moves_case

pytestmark = pytest.mark.slow  # several kernels of many registers are compiled by g++ and by nvcc

_PARTS = [MOVE_ROWS[start : start + 26] for start in range(0, len(MOVE_ROWS), 26)]


@pytest.fixture(scope="module")
def results(sim: Sim) -> dict[str, Array]:
    """Return the results of every row, of a few kernels that share them."""
    found: dict[str, Array] = {}
    for rows in _PARTS:
        found |= move_results(rows, sim.with_(timeout_s=60).outputs(moves_case(rows))["out"])
    return found


@pytest.mark.parametrize("row", MOVE_ROWS, ids=[row.name for row in MOVE_ROWS])
def test_move_gives_what_the_isa_says(row: TensorMoveRow, results: dict[str, Array]) -> None:
    np.testing.assert_array_equal(results[row.name], row.expected)


def test_nvcc_takes_every_row(settings: Settings, tmp_path: Path) -> None:
    assert_nvcc_takes(moves_case(MOVE_ROWS).source, "sm_100a", tmp_path, settings)
