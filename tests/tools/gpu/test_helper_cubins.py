"""kopt's own kernels compile for every kind of device that kopt knows."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import read_cubin
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.gpu.helper_cubins import helper_cubins
from kopt.tools.gpu.worker.execution import copies_parameter

pytestmark = pytest.mark.slow  # kopt's own kernels are compiled for all devices


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_every_helper_is_a_cubin_with_its_kernels(
    arch: str, settings: Settings, toolchain: FoundToolchain
) -> None:
    cubins = helper_cubins(arch, settings)
    names = {
        name: sorted(kernel.name for kernel in read_cubin(Path(path).read_bytes()).kernels)
        for name, path in cubins.items()
    }
    assert names["late_producer"] == ["late_producer"]
    assert names["leftovers"] == ["leftover_local", "leftover_shared"]
    assert names["empty_kernel"] == ["empty_dependent_kernel", "empty_kernel"]


def test_the_late_producer_takes_what_the_worker_gives_it(settings: Settings) -> None:
    cubin = Path(helper_cubins("sm_90a", settings)["late_producer"])
    (kernel,) = read_cubin(cubin.read_bytes()).kernels
    (parameter,) = kernel.parameters
    assert parameter.size_bytes == len(copies_parameter([]))
