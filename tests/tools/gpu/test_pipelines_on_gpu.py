"""Hand-written pipelines and kernels of wgmma leave on a GPU what the simulator's tests expect."""

from collections.abc import Iterator

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from support.gpu_runner import GpuRunner
from support.pipeline_cases import PIPELINE_CASES, PipelineCase
from support.warpgroup_kernels import CLUSTER_GEMM, GEMM, attention_case, gemm_case

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def runner(settings: Settings) -> Iterator[GpuRunner]:
    """Yield what runs cases on the first GPU, which must be one of Hopper."""
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        if device.facts.arch != "sm_90a":  # no other architecture compiles all of them
            pytest.skip("wgmma and setmaxnreg need sm_90a")
        yield GpuRunner(device, settings)


@pytest.mark.parametrize("one", PIPELINE_CASES, ids=[one.name for one in PIPELINE_CASES])
def test_pipeline_leaves_what_its_source_says(one: PipelineCase, runner: GpuRunner) -> None:
    np.testing.assert_array_equal(runner.out(one.case), one.expected)


@pytest.mark.parametrize("source", [GEMM, CLUSTER_GEMM], ids=["block", "cluster"])
def test_persistent_gemm_of_two_consumers_is_right(runner: GpuRunner, source: str) -> None:
    case, expected = gemm_case(source)
    found = runner.out(case).view(expected.dtype)
    np.testing.assert_array_equal(found.astype(float), expected.astype(float))


def test_attention_whose_weights_stay_in_registers_is_right(runner: GpuRunner) -> None:
    case, expected = attention_case()
    np.testing.assert_allclose(runner.out(case), expected, rtol=2e-3, atol=2e-3)
