"""PTX instructions give on a GPU what the simulator's tests expect of them."""

from collections.abc import Iterator

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from support.gpu_runner import GpuRunner
from support.matrix_rows import MATRIX_ROWS
from support.mma_rows import MMA_ROWS
from support.ptx_rows import COUNT, ROWS, Row, judge, ptx_case
from support.sim_run import Array
from support.warp_rows import WarpRow, judge_warp, results_of, warp_case
from support.warpgroup_rows import (
    WARPGROUP_ROWS,
    WarpgroupRow,
    judge_warpgroup,
    warpgroup_case,
    warpgroup_results,
)
from support.wmma_case import WMMA_FORMS, wmma_case, wmma_results

pytestmark = pytest.mark.gpu


WARP_ROWS = MMA_ROWS + MATRIX_ROWS


@pytest.fixture(scope="module")
def results(settings: Settings) -> Iterator[dict[str, Array]]:
    """Yield the results of every row that the GPU knows, and what the wmma kernel leaves."""
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        known = _number(device.facts.arch)
        rows = [row for row in ROWS if row.least_arch <= known]
        warp_rows = [row for row in WARP_ROWS if row.least_arch <= known]
        run = GpuRunner(device, settings)
        cells = run.out(ptx_case(rows)).reshape(len(rows), COUNT)
        found = {row.text: cells for row, cells in zip(rows, cells, strict=True)}
        found |= results_of(warp_rows, run.out(warp_case(warp_rows)))
        if device.facts.arch == "sm_90a":  # no other architecture has wgmma
            found |= warpgroup_results(WARPGROUP_ROWS, run.out(warpgroup_case(WARPGROUP_ROWS)))
        yield {**found, "wmma": run.out(wmma_case())}


@pytest.mark.parametrize("row", ROWS, ids=[row.text for row in ROWS])
def test_instruction_gives_what_the_simulator_gives(row: Row, results: dict[str, Array]) -> None:
    if row.text not in results:  # nvcc compiles it for newer GPUs alone
        pytest.skip(f"the instruction needs sm_{row.least_arch}")
    judge(row, results[row.text], row.error)


@pytest.mark.parametrize("row", WARP_ROWS, ids=[row.name for row in WARP_ROWS])
def test_warp_gets_what_the_simulator_gives(row: WarpRow, results: dict[str, Array]) -> None:
    if row.name not in results:  # nvcc compiles it for newer GPUs alone
        pytest.skip(f"the instruction needs sm_{row.least_arch}")
    judge_warp(row, results[row.name])


@pytest.mark.parametrize("row", WARPGROUP_ROWS, ids=[row.name for row in WARPGROUP_ROWS])
def test_warpgroup_gets_what_the_simulator_gives(
    row: WarpgroupRow, results: dict[str, Array]
) -> None:
    if row.name not in results:  # no other architecture has wgmma
        pytest.skip("wgmma needs sm_90a")
    judge_warpgroup(row, results[row.name])


@pytest.mark.parametrize("name", [form.name for form in WMMA_FORMS])
def test_wmma_gives_what_the_simulator_gives(name: str, results: dict[str, Array]) -> None:
    np.testing.assert_array_equal(*wmma_results(results["wmma"])[name])


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("af"))
