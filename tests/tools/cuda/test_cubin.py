"""Facts of cubins that nvcc makes here."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.compile_result import KernelParameter
from kopt.tools.cuda.cubin import CubinError, read_cubin
from support.cuda_sources import SCALE, cubin_of
from support.quick_cases import first_quick


@pytest.mark.parametrize("arch", first_quick(["sm_90a", "sm_100a"], 1))
def test_parameters_and_launch_bounds_are_read(settings: Settings, arch: str) -> None:
    facts = read_cubin(cubin_of(SCALE, settings, arch))
    (kernel,) = facts.kernels
    assert kernel.name == "scale"
    assert kernel.max_threads_per_block == 128
    assert kernel.parameters == tuple(
        KernelParameter(ordinal=ordinal, offset_bytes=offset, size_bytes=size)
        for ordinal, (offset, size) in enumerate([(0, 8), (8, 8), (16, 4), (24, 8)])
    )
    assert (facts.module_global_bytes, facts.has_address_bank) == (0, False)
    assert facts.undefined_functions == ()


@pytest.mark.parametrize("arch", first_quick(["sm_90a", "sm_100a"], 1))
def test_parameters_are_aligned_in_their_bank(settings: Settings, arch: str) -> None:
    source = """
struct alignas(64) Descriptor { char bytes[128]; };
extern "C" __global__ void k(char flag, const __grid_constant__ Descriptor d, float* out) {
  out[0] = d.bytes[flag];
}
extern "C" __global__ void empty() {}
"""
    empty, kernel = read_cubin(cubin_of(source, settings, arch)).kernels
    assert (empty.name, empty.parameters, empty.max_threads_per_block) == ("empty", (), None)
    flag, descriptor, out = kernel.parameters
    assert [flag.size_bytes, descriptor.size_bytes, out.size_bytes] == [1, 128, 8]
    assert flag.offset_bytes == 0
    assert (kernel.parameter_base_bytes + descriptor.offset_bytes) % 64 == 0
    assert out.offset_bytes == descriptor.offset_bytes + 128


def test_module_state_constants_and_external_calls_are_seen(settings: Settings) -> None:
    source = """
#include <cstdio>
__device__ int counter[4];
__constant__ int table[8];
extern "C" __global__ void k(int* out) { out[0] = table[out[1]] + atomicAdd(counter, 1); }
extern "C" __global__ void p(int* out) { printf("%d", out[0]); }
"""
    facts = read_cubin(cubin_of(source, settings))
    assert facts.undefined_functions == ("vprintf",)
    assert facts.has_address_bank
    assert facts.module_global_bytes >= 16
    assert all(kernel.constant_bytes >= 32 for kernel in facts.kernels)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"no cubin at all" * 100])
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(CubinError):
        read_cubin(data)


def test_a_truncated_cubin_is_refused(settings: Settings) -> None:
    data = cubin_of(SCALE, settings)
    with pytest.raises(CubinError):
        read_cubin(data[: len(data) // 2])
