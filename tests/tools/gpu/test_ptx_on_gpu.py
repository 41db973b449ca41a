"""PTX instructions give on a GPU what the simulator's tests expect of them."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import ExecutionRequest
from kopt.tools.gpu.device import CudaDevice
from support.ptx_rows import COUNT, ROWS, Row, judge, ptx_case
from support.sim_run import POISON, Array

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def results(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Array]]:
    """Yield the results of every row that the GPU knows, of one kernel."""
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        yield _results(device, settings, tmp_path_factory.mktemp("ptx"))


def _results(device: CudaDevice, settings: Settings, folder: Path) -> dict[str, Array]:
    arch = device.facts.arch
    rows = [row for row in ROWS if row.least_arch <= _number(arch)]
    case = ptx_case(rows)
    (folder / "rows.cu").write_text(case.source, "utf-8")
    nvcc = find_toolchain(settings).nvcc
    words = [str(nvcc), f"-arch={arch}", "-cubin", "-o", "rows.cubin", "rows.cu"]
    subprocess.run(words, cwd=folder, check=True)
    program = replace(case.program, cubin_path=folder / "rows.cubin", arch=arch)
    outcome = device.execute(ExecutionRequest(program, dict(case.inputs), POISON))
    assert outcome.status is Status.PASSED, outcome.diagnostics
    found = outcome.outputs["out"].reshape(len(rows), COUNT)
    return {row.text: cells for row, cells in zip(rows, found, strict=True)}


@pytest.mark.parametrize("row", ROWS, ids=[row.text for row in ROWS])
def test_instruction_gives_what_the_simulator_gives(row: Row, results: dict[str, Array]) -> None:
    if row.text not in results:  # nvcc compiles it for newer GPUs alone
        pytest.skip(f"the instruction needs sm_{row.least_arch}")
    judge(row, results[row.text], row.error)


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("af"))
