"""tcgen05.mma gives on the simulator what the PTX ISA says of each kind and layout."""

from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from support.cuda_sources import assert_nvcc_takes
from support.sim_run import Array, Sim
from support.tensor_products import (
    PRODUCT_ROWS,
    TensorProductRow,
    product_results,
    products_case,
)

pytestmark = pytest.mark.slow  # a hundred products are compiled by g++ and by nvcc

_PARTS = [PRODUCT_ROWS[start : start + 30] for start in range(0, len(PRODUCT_ROWS), 30)]


@pytest.fixture(scope="module")
def results(sim: Sim) -> dict[str, Array]:
    """Return the results of every row, of a few kernels that share them."""
    found: dict[str, Array] = {}
    for rows in _PARTS:
        out = sim.with_(timeout_s=60).outputs(products_case(rows))["out"]
        found |= product_results(rows, out)
    return found


@pytest.mark.parametrize("row", PRODUCT_ROWS, ids=[row.name for row in PRODUCT_ROWS])
def test_product_gives_what_the_isa_says(row: TensorProductRow, results: dict[str, Array]) -> None:
    np.testing.assert_array_equal(results[row.name], row.expected)


def test_nvcc_takes_every_row(settings: Settings, tmp_path: Path) -> None:
    assert_nvcc_takes(products_case(PRODUCT_ROWS).source, "sm_100a", tmp_path, settings)
