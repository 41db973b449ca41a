"""Global loads that a thread has under way, read from code that nvcc made."""

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import read_cubin
from kopt.tools.cuda.sass_reader import loads_in_flight
from support.cuda_sources import cubin_of
from support.quick_cases import first_quick

ONE_AFTER_ANOTHER = """
extern "C" __global__ void k(const int* in, int* out) {
  int at = threadIdx.x;
  for (int i = 0; i < 8; ++i) at = in[at];
  out[threadIdx.x] = at;
}"""
EIGHT_AT_ONCE = """
extern "C" __global__ void k(const int* in, int* out) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += in[threadIdx.x + 256 * i];
  out[threadIdx.x] = sum;
}"""
STORES_BETWEEN = """
extern "C" __global__ void k(const int* in, int* out, int n) {
  for (int i = threadIdx.x; i < n; i += 256) out[i] = in[i] + in[i + n];
}"""
NONE = 'extern "C" __global__ void k(int* out) { out[threadIdx.x] = 1; }'


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("source", "loads"),
    first_quick([(ONE_AFTER_ANOTHER, 1), (EIGHT_AT_ONCE, 8), (STORES_BETWEEN, 2), (NONE, 0)], 2),
    ids=["one after another", "eight at once", "stores between", "none"],
)
def test_loads_before_the_first_wait(
    settings: Settings, source: str, loads: int, arch: str
) -> None:
    code = read_cubin(cubin_of(source, settings, arch)).code["k"]
    assert loads_in_flight(code, arch) == loads


def test_another_architecture_is_not_guessed_at() -> None:
    assert loads_in_flight(b"\0" * 16, "sm_80") is None
