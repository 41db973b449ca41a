"""The report of `ptxas -v`, as this machine's ptxas writes it."""

from kopt.config.settings import Settings
from kopt.tools.cuda.compiler_log import parse_ptxas_report
from support.cuda_sources import SCALE, compiled

SPILL = """
extern "C" __global__ void __launch_bounds__(1024, 2) spill(const float4* x, float4* y) {
  float4 v[24];
  #pragma unroll
  for (int k = 0; k < 24; k++) v[k] = x[k * 1024 + threadIdx.x];
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < 24; k++) y[k * 1024 + threadIdx.x] = v[23 - k];
}
"""


def test_registers_barriers_and_static_shared_memory_are_read(settings: Settings) -> None:
    report = parse_ptxas_report(compiled(SCALE, settings).log)["scale"]
    assert 4 <= report.registers_per_thread <= 64
    assert report.barriers == 1
    assert report.static_smem_bytes == 512  # without the 1,024 bytes that the system reserves
    assert (report.stack_bytes, report.spill_store_bytes, report.spill_load_bytes) == (0, 0, 0)


def test_spill_stores_and_loads_are_told_apart(settings: Settings) -> None:
    report = parse_ptxas_report(compiled(SPILL, settings).log)["spill"]
    assert report.registers_per_thread <= 32
    assert report.spill_store_bytes >= 4
    assert report.spill_load_bytes >= 4
    assert report.stack_bytes >= 4


def test_a_called_function_does_not_stand_for_its_kernel(settings: Settings) -> None:
    source = """
__device__ __noinline__ float helper(float a) {
  volatile float local[32];
  for (int i = 0; i < 32; i++) local[i] = a * i;
  return local[(int)a & 31];
}
extern "C" __global__ void first(float* o) { o[0] = helper(o[1]) + helper(o[2]); }
extern "C" __global__ void second(float* o) { o[0] = 1.0f; }
"""
    kernels = parse_ptxas_report(compiled(source, settings).log)
    assert set(kernels) == {"first", "second"}
    assert kernels["second"].stack_bytes == 0


def test_nvrtc_spells_the_stack_line_in_its_own_way() -> None:
    text = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 29 registers, used 3 barriers, 256+0 bytes smem
"""
    report = parse_ptxas_report(text)["k"]
    assert (report.stack_bytes, report.spill_store_bytes, report.spill_load_bytes) == (16, 12, 8)
    assert (report.registers_per_thread, report.barriers, report.static_smem_bytes) == (29, 3, 256)
