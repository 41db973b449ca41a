"""NVRTC beside nvcc: the same machine code, and what goes to nvcc."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kopt.kernels.status import Status
from kopt.tools.cuda.compile_job import CompileContext
from kopt.tools.cuda.compile_unit import UnitOutcome, compile_unit
from support.compile_requests import job
from support.cuda_sources import FP4_QUANTIZE

pytestmark = pytest.mark.slow  # two compilers for each
CLUSTER_SUM = """
#include <cooperative_groups.h>
extern "C" __global__ void __cluster_dims__(2) k(float* o) {
  __shared__ float part;
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) part = o[blockIdx.x];
  cluster.sync();
  const float other = *cluster.map_shared_rank(&part, cluster.block_rank() ^ 1);
  cluster.barrier_arrive();
  o[blockIdx.x] = part + other;
  cluster.barrier_wait();
}
"""
WARP_SUM = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(float* o) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  o[threadIdx.x] = cg::reduce(warp, o[threadIdx.x], cg::plus<float>());
}
"""
NUMBERS = """
constexpr float least = -INFINITY;
extern "C" __global__ void k(float* o, double* p) {
  o[0] = least;
  o[1] = NAN;
  o[2] = HUGE_VALF;
  p[0] = HUGE_VAL * p[1];
  p[2] = M_PI * p[3];
  p[4] = sizeof(INFINITY) + sizeof(NAN);
}
"""
MATHEMATICS = """
#include <cmath>
#include <limits>
#include <type_traits>
template <class T> using Wide = std::conditional_t<std::is_integral_v<T>, double, T>;
template <class T> __device__ void of_type(T* o) {
  using Limits = std::numeric_limits<T>;
  o[0] = Limits::min(), o[1] = Limits::max(), o[2] = Limits::lowest();
  o[3] = std::is_same_v<Wide<T>, T> + 2 * Limits::is_signed + 4 * Limits::is_integer;
  o[4] = static_cast<T>(std::abs(static_cast<Wide<T>>(o[5])));
  if constexpr (!std::is_integral_v<T>) {
    o[6] = Limits::epsilon(), o[7] = Limits::infinity(), o[8] = Limits::quiet_NaN();
    o[9] = std::exp(o[10]) + std::log1p(o[11]) + std::tanh(o[12]) + std::erf(o[13]);
    o[14] = std::floor(o[15]) + std::rint(o[16]) + std::fmod(o[17], o[18]);
    o[19] = std::pow(o[20], o[21]) + std::hypot(o[22], o[23]) + std::fmax(o[24], o[25]);
    o[26] = std::isnan(o[27]) + std::isfinite(o[28]) + std::copysign(o[29], o[30]);
  }
}
extern "C" __global__ void k(float* f, double* d, int* i, unsigned* u, long long* l, short* s) {
  of_type(f), of_type(d), of_type(i), of_type(u), of_type(l), of_type(s);
  i[40] = std::abs(i[41]);
  l[40] = std::abs(l[41]);
}
"""
TENSOR_MAP = """
#include <cuda.h>
extern "C" __global__ void k(const float* x, const __grid_constant__ CUtensorMap map, int n,
                             unsigned long long* o) {
  o[0] = reinterpret_cast<unsigned long long>(&map) + sizeof(map) + alignof(CUtensorMap) + n;
  o[1] = map.opaque[3] + sizeof(cuuint32_t) + sizeof(cuuint64_t) + (x != nullptr);
}
"""


def machine_code(outcome: UnitOutcome) -> dict[str, bytes]:
    """The instructions of each kernel, byte for byte."""
    assert outcome.entry is not None
    with outcome.entry.cubin_path.open("rb") as file:
        sections = list(ELFFile(file).iter_sections())
        return {one.name: one.data() for one in sections if one.name.startswith(".text.")}


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_nvrtc_and_nvcc_give_the_same_instructions(
    nvcc: CompileContext, nvrtc: CompileContext, arch: str
) -> None:
    slow = compile_unit(job(FP4_QUANTIZE, arch), nvcc)
    fast = compile_unit(job(FP4_QUANTIZE, arch), nvrtc)
    assert fast.unit.toolchain.compiler == "nvrtc"
    assert machine_code(fast) == machine_code(slow)
    assert list(machine_code(fast)) == [".text.quantize"]
    assert fast.unit.kernels == slow.unit.kernels


@pytest.mark.parametrize("source", [CLUSTER_SUM, WARP_SUM], ids=["cluster", "reduce"])
def test_cooperative_groups_mean_the_same_to_nvrtc(
    nvcc: CompileContext, nvrtc: CompileContext, source: str
) -> None:
    slow, fast = compile_unit(job(source), nvcc), compile_unit(job(source), nvrtc)
    assert fast.unit.toolchain.compiler == "nvrtc"
    assert machine_code(fast) == machine_code(slow)


@pytest.mark.parametrize(
    "source",
    [NUMBERS, MATHEMATICS, TENSOR_MAP],
    ids=["numbers", "mathematics", "tensor map"],
)
def test_what_nvcc_takes_of_host_headers_means_the_same_to_nvrtc(
    nvcc: CompileContext, nvrtc: CompileContext, source: str
) -> None:
    slow, fast = compile_unit(job(source), nvcc), compile_unit(job(source), nvrtc)
    assert fast.unit.toolchain.compiler == "nvrtc"
    assert machine_code(fast) == machine_code(slow)
    assert fast.unit.kernels == slow.unit.kernels


@pytest.mark.parametrize("call", ["std::pow(x, 2)", "std::pow(2, x)", "std::copysign(x, 1.0)"])
def test_operands_of_two_types_are_promoted_as_by_nvcc(
    nvcc: CompileContext, nvrtc: CompileContext, call: str
) -> None:
    source = (
        f'#include <cmath>\nextern "C" __global__ void k(double* o, float x) {{ *o = {call}; }}'
    )
    slow, fast = compile_unit(job(source), nvcc), compile_unit(job(source), nvrtc)
    assert fast.unit.toolchain.compiler == "nvcc"
    assert machine_code(fast) == machine_code(slow)


def test_what_else_the_driver_s_header_declares_goes_to_nvcc(nvrtc: CompileContext) -> None:
    source = """#include <cuda.h>
extern "C" __global__ void k(int* o) { o[0] = CUDA_ERROR_INVALID_VALUE; }
"""
    unit = compile_unit(job(source), nvrtc).unit
    assert (unit.status, unit.toolchain.compiler) == (Status.PASSED, "nvcc")


def test_atomics_of_libcu_that_groups_would_bring_go_to_nvcc(nvrtc: CompileContext) -> None:
    source = """#include <cooperative_groups.h>
extern "C" __global__ void k(int* o) { cuda::atomic_ref<int>(*o).fetch_add(1); }
"""
    unit = compile_unit(job(source), nvrtc).unit
    assert (unit.status, unit.toolchain.compiler) == (Status.PASSED, "nvcc")


def test_nvrtc_goes_on_where_its_folders_were_deleted(
    nvrtc: CompileContext, tmp_path: Path
) -> None:
    own = replace(nvrtc, settings=replace(nvrtc.settings, home=tmp_path))
    assert compile_unit(job(FP4_QUANTIZE), own).unit.toolchain.compiler == "nvrtc"
    shutil.rmtree(tmp_path / "cache")
    again = compile_unit(job(FP4_QUANTIZE), own).unit
    assert (again.status, again.toolchain.compiler) == (Status.PASSED, "nvrtc")


def test_nvrtc_knows_fixed_width_integers(nvrtc: CompileContext) -> None:
    source = """#include <cstdint>
#include <cmath>
extern "C" __global__ void k(uint64_t* o, const int8_t* i) { o[0] = std::uint64_t(i[0]); }
"""
    unit = compile_unit(job(source), nvrtc).unit
    assert (unit.status, unit.toolchain.compiler) == (Status.PASSED, "nvrtc")


def test_what_nvrtc_cannot_compile_goes_to_nvcc(nvrtc: CompileContext) -> None:
    source = """#include <climits>
extern "C" __global__ void k(int* o) { o[0] = INT_MAX; }
"""
    unit = compile_unit(job(source), nvrtc).unit
    assert (unit.status, unit.toolchain.compiler) == (Status.PASSED, "nvcc")


def test_what_nvrtc_spills_goes_to_nvcc(nvrtc: CompileContext) -> None:
    source = """extern "C" __global__ void k(float* o, const float* i) {
  float v[48];
  for (int n = 0; n < 48; ++n) v[n] = i[n * 32 + threadIdx.x];
  __syncthreads();
  for (int n = 0; n < 48; ++n) o[n * 32 + threadIdx.x] = v[47 - n] * v[n];
}
"""
    loose = compile_unit(job(source), nvrtc).unit
    assert (loose.toolchain.compiler, loose.kernels[0].spill_store_bytes) == ("nvrtc", 0)
    tight = compile_unit(replace(job(source), max_registers=24), nvrtc).unit
    assert (tight.status, tight.toolchain.compiler) == (Status.PASSED, "nvcc")
    assert tight.kernels[0].spill_store_bytes > 0


def test_errors_come_from_nvcc_whichever_compiler_was_asked(nvrtc: CompileContext) -> None:
    unit = compile_unit(job('extern "C" __global__ void k() { mistake; }'), nvrtc).unit
    assert (unit.status, unit.toolchain.compiler) == (Status.COMPILE_ERROR, "nvcc")
    assert unit.diagnostics[0].line == 1
