"""wgmma.mma_async gives on the simulator what the PTX ISA says of each form and layout."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.cuda_sources import assert_nvcc_takes
from support.sim_run import Array, Sim
from support.warpgroup_rows import (
    WARPGROUP_ROWS,
    WarpgroupRow,
    judge_warpgroup,
    warpgroup_case,
    warpgroup_results,
)

pytestmark = pytest.mark.slow  # programs with every row
_PARTS = [WARPGROUP_ROWS[start : start + 24] for start in range(0, len(WARPGROUP_ROWS), 24)]
"""As many as compile well within the time that a candidate has."""


@pytest.fixture(scope="module")
def results(sim: Sim) -> dict[str, Array]:
    """Return the results of every row, of a few kernels that share them."""
    found: dict[str, Array] = {}
    for rows in _PARTS:
        out = sim.with_(timeout_s=60).outputs(warpgroup_case(rows))["out"]
        found |= warpgroup_results(rows, out)
    return found


@pytest.mark.parametrize("row", WARPGROUP_ROWS, ids=[row.name for row in WARPGROUP_ROWS])
def test_product_gives_what_the_isa_says(row: WarpgroupRow, results: dict[str, Array]) -> None:
    judge_warpgroup(row, results[row.name])


def test_nvcc_takes_every_row(settings: Settings, tmp_path: Path) -> None:
    assert_nvcc_takes(warpgroup_case(WARPGROUP_ROWS).source, "sm_90a", tmp_path, settings)
