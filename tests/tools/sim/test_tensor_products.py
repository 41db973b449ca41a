"""tcgen05.mma gives on the simulator what the PTX ISA says of each kind and layout."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.toolchain import find_toolchain
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
    (tmp_path / "rows.cu").write_text(products_case(PRODUCT_ROWS).source, "utf-8")
    words = [str(find_toolchain(settings).nvcc), "-arch=sm_100a", "-cubin", "-o", "rows.cubin"]
    subprocess.run([*words, "rows.cu"], cwd=tmp_path, check=True)
