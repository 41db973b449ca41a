"""A real profile: its numbers stand in relations that hold on every GPU."""

from collections.abc import Iterator

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.status import Provenance, Status
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.profiling.nvidia_tools import find_ncu
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate

pytestmark = pytest.mark.gpu

SMALL = "fused_add_rmsnorm_b8xh4096"
LARGE = "silu_and_mul_b1024xh14336"


class Gpu:
    """The first GPU."""

    def __init__(self, device: CudaDevice, settings: Settings) -> None:
        self.settings = settings
        self._device = device
        self._profiles: dict[str, ProfileResult] = {}

    def profile(self, kernel: str) -> ProfileResult:
        """Return the profile of a reference kernel, made once."""
        if kernel not in self._profiles:
            problem, workload = find_kernel(kernel)
            request = ProfileRequest(
                case=Case(problem, workload, read_candidate(problem.folder / "reference.cu")),
                arch=self._device.facts.arch,
            )
            devices = ProfileDevices(timing=self._device)
            self._profiles[kernel] = profile_candidate(request, self.settings, devices)
        return self._profiles[kernel]


@pytest.fixture(scope="module")
def gpu(settings: Settings) -> Iterator[Gpu]:
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        yield Gpu(device, settings)


@pytest.mark.parametrize("kernel", [SMALL, LARGE])
def test_time_lies_between_floor_and_reason(kernel: str, gpu: Gpu) -> None:
    result = gpu.profile(kernel)
    assert result.status is Status.PASSED
    measured = result.measured
    assert measured is not None
    assert 0 < measured.null_kernel_us < measured.latency.median_us
    assert 0 < measured.roofline_fraction < 1.02
    assert 0 < measured.copy_fraction < 1.1


def test_more_bytes_take_longer_and_come_closer_to_a_copy(gpu: Gpu) -> None:
    small, large = gpu.profile(SMALL).measured, gpu.profile(LARGE).measured
    assert small is not None
    assert large is not None
    assert large.latency.median_us > small.latency.median_us
    assert large.copy_fraction > small.copy_fraction


def test_bottleneck_is_measured_or_says_that_it_is_not(gpu: Gpu) -> None:
    found = gpu.profile(LARGE).bottleneck
    assert found is not None
    assert found.facts


def test_counters_are_read_or_say_why_not(gpu: Gpu) -> None:
    hardware = gpu.profile(LARGE).hardware
    assert hardware is not None
    if find_ncu(gpu.settings) is None or hardware.provenance is Provenance.UNAVAILABLE:
        assert hardware.reason
        pytest.skip(f"no counters here: {hardware.reason}")
    (launch,) = hardware.launches
    model = gpu.profile(LARGE).byte_model
    assert launch.time_us is not None
    assert launch.dram_read_bytes is not None
    assert 0.9 * model.read_bytes < launch.dram_read_bytes < 2 * model.read_bytes
    assert launch.achieved_occupancy is not None
    assert 0 < launch.achieved_occupancy <= 1
    assert launch.stalls
    assert launch.stall_lines, "the line table should have given lines"
