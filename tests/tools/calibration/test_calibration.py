"""What a GPU is measured for: the chains that are walked, the probes, and the whole."""

import numpy as np
import pytest

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.status import Provenance, Status
from kopt.tools.bench import plain_copy
from kopt.tools.calibration.latencies import chained_lines, measure_latencies
from kopt.tools.calibration.stage import COPIED_MIB, calibrate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest
from kopt.tools.gpu.device import CudaDevice
from support.bench_cases import FakeCompiler
from support.calibrated_device import CalibratedDevice, calibrated_device
from support.scripted_timer import FACTS

pytestmark = pytest.mark.slow  # every probe is compiled and simulated
OF_EVERY_GPU = ["dram", "l2", "l1", "shared", "shuffle", "barrier"]
OF_CLUSTERS = ["cluster_barrier", "cluster_load"]


def _ring(links: np.ndarray, first: int) -> list[int]:
    walked = [first]
    while (at := int(links[walked[-1]])) != first:
        walked.append(at)
    return walked


def test_each_chain_is_a_ring_of_its_own_whose_lines_are_met_once() -> None:
    links = chained_lines()
    small, near, far = (_ring(links, first) for first in (0, 1 << 15, 1 << 20))
    assert [len(small), len(near), len(far)] == [32, 4096, 4096]
    met = np.array(small + near + far)
    assert len(np.unique(met // 32)) == len(met)  # a line of 128 bytes each
    steps = np.diff(far)
    assert np.unique(steps).size > 4000  # in no order that a prefetcher could guess
    assert max(near) < 1 << 20 and max(far) * 4 < 128 << 20 < links.nbytes


@pytest.mark.parametrize(
    ("capability", "names"), [((9, 0), OF_EVERY_GPU + OF_CLUSTERS), ((8, 0), OF_EVERY_GPU)]
)
def test_every_probe_runs_without_a_fault_and_writes_its_own_slot(
    settings: Settings, capability: tuple[int, int], names: list[str]
) -> None:
    facts = FACTS.model_copy(update={"compute_capability": capability})
    found = measure_latencies(calibrated_device(settings, facts), settings)
    assert [one.name for one in found] == names
    assert all(one.value >= 0 and one.unit == "clocks" for one in found)


def test_a_calibration_has_latencies_launches_and_copies(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_copy, "compile_candidate", FakeCompiler())
    told: list[str] = []
    result = calibrate(calibrated_device(settings), settings, told.append)
    by_name = {one.name: one for one in result.values}
    assert result.provenance is Provenance.MEASURED
    assert result.device == FACTS
    assert by_name["null_kernel"].value == pytest.approx(1.1)
    assert by_name["block_start"].value == pytest.approx(0.0)
    for mib in COPIED_MIB:
        assert by_name[f"copy_{mib}_mib"].value == pytest.approx(mib * 2**20 / 5.0 / 1e3, rel=1e-3)
    assert told[0] == "latencies, 1 of 3"
    assert told[-1] == "copies, 3 of 3: 256 MiB"


def test_a_probe_that_fails_is_the_machine_s_fault(settings: Settings) -> None:
    class Broken(CalibratedDevice):
        def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
            del request
            return ExecutionOutcome(Status.CRASH)

    with pytest.raises(InfraError, match="a probe fails: crash"):
        measure_latencies(Broken(device_facts=FACTS), settings)


@pytest.mark.gpu
def test_a_gpu_answers_nearer_memory_sooner(settings: Settings) -> None:
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        result = calibrate(device, settings)
    found = {one.name: one.value for one in result.values}
    assert found["shared"] < found["l1"] * 1.5 < found["l2"] < found["dram"]
    assert found["copy_1_mib"] < found["copy_64_mib"]
    assert 0.2 < found["dependent_null_kernel"] < found["null_kernel"] < 5
    assert result.elapsed_s < 60
