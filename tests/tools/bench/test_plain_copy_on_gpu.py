"""The plain copy on a real GPU, as a run measures it; held against wide ranges only."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.roofline import workload_bytes
from kopt.tools.bench.plain_copy import measure_copy, plain_copy
from kopt.tools.bench.verdict import least_memory_us
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from support.shared_caches import share_caches

pytestmark = pytest.mark.gpu

KERNELS = ("silu_and_mul_b8xh14336", "rope_quantize_fp8_n128xh128", "merge_state_n2048xh64xd128")


def test_a_copy_takes_longer_than_its_bytes_need_and_is_the_same_again(
    tmp_path: Path, shared_caches: Path
) -> None:
    settings = Settings(home=share_caches(tmp_path / "home", shared_caches), jobs=2)
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        ceiling_gb_s = device.copy_ceiling_gb_s()
        times_us: list[float] = []
        for kernel in KERNELS:
            model = workload_bytes(*find_kernel(kernel, None))
            found = plain_copy(model, device, settings)
            assert found is not None
            assert plain_copy(model, device, settings) == found  # kept
            again = measure_copy(model.read_bytes, model.written_bytes, device, settings)
            print(f"{kernel}: {found}; again {again.latency.median_us:.3f} us")
            median_us = found.latency.median_us
            assert again.latency.median_us == pytest.approx(median_us, rel=0.03)
            assert median_us > least_memory_us(model, device.gpu)
            assert found.gb_s < 1.15 * ceiling_gb_s  # reads alone are faster than a copy
            times_us.append(median_us)
        assert times_us == sorted(times_us)  # as their bytes
