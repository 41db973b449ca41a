"""What nvcc makes of <kopt/...>: packed conversions and float2 on sm_100a, software on sm_90a."""

from pathlib import Path
from typing import Literal

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from support.oracle_run import problems
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # two compilers for each
CANDIDATE = """/* kopt: 1
family: [fp4_intrinsics, vectorization]
launch:
  - kernel: quantize_blocks
    grid: ceil_div(M * K // 16, 128)
    block: 128
    args: [input, global_scale, out, block_scale, M, K]
*/
#include <cuda_bf16.h>
#include <kopt/nvfp4_utils.cuh>

extern "C" __global__ void quantize_blocks(const __nv_bfloat16* input, const float* global_scale,
                                           unsigned char* out, __nv_fp8_storage_t* block_scale,
                                           int M, int K) {
  const int blocks_per_row = K / kopt::kNvfp4BlockSize;
  const int block = blockIdx.x * 128 + threadIdx.x;
  if (block >= M * blocks_per_row) return;
  float values[2][8];
  float amax = 0.0f;
  for (int i = 0; i < 16; ++i) {
    values[i / 8][i % 8] = __bfloat162float(input[block * 16 + i]);
    amax = fmaxf(amax, fabsf(values[i / 8][i % 8]));
  }
  const unsigned char scale = kopt::block_scale(amax, *global_scale);
  const float multiplier = kopt::code_multiplier(scale, *global_scale);
  for (int i = 0; i < 16; ++i) values[i / 8][i % 8] *= multiplier;
  reinterpret_cast<uint2*>(out)[block] =
      make_uint2(kopt::floats_to_e2m1x8(values[0]), kopt::floats_to_e2m1x8(values[1]));
  const int row = block / blocks_per_row;
  block_scale[kopt::sf_128x4_offset(row, block % blocks_per_row, blocks_per_row)] = scale;
}
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(home=share_caches(tmp_path_factory.mktemp("home"), shared_caches), jobs=2)


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_eight_pairs_take_eight_conversions_on_sm_100a_and_none_on_sm_90a(
    settings: Settings, compiler: Literal["nvcc", "nvrtc"]
) -> None:
    problem = problems()["nvfp4_quantize"]
    request = CompileRequest(
        Case(problem, problem.workloads[0], Candidate(CANDIDATE)),
        archs=("sm_100a", "sm_90a"),
        compiler=compiler,
    )
    result = compile_candidate(request, settings)
    assert result.status == "passed", result.diagnostics
    packed = {
        build.arch: build.kernels[0].instruction_mix.get("f2fp", 0) for build in result.builds
    }
    # Both architectures convert the scale to e4m3 and back in one instruction each.
    assert packed == {"sm_100a": 10, "sm_90a": 2}


PACKED_BY_SHIFTS = """
__device__ unsigned pack(const float (&v)[8]) {
  const unsigned b0 = kopt::float2_to_e2m1x2(make_float2(v[0], v[1]));
  const unsigned b1 = kopt::float2_to_e2m1x2(make_float2(v[2], v[3]));
  const unsigned b2 = kopt::float2_to_e2m1x2(make_float2(v[4], v[5]));
  const unsigned b3 = kopt::float2_to_e2m1x2(make_float2(v[6], v[7]));
  return b0 | b1 << 8 | b2 << 16 | b3 << 24;
}
extern "C" __global__ void quantize_blocks("""


def test_eight_codes_need_no_instruction_that_puts_bytes_together(settings: Settings) -> None:
    shifted = CANDIDATE.replace("kopt::floats_to_e2m1x8", "pack")
    shifted = shifted.replace('extern "C" __global__ void quantize_blocks(', PACKED_BY_SHIFTS)
    # Three of them at least for each of the two words of a block.
    assert _instructions(CANDIDATE, settings) + 6 <= _instructions(shifted, settings)


def test_float2_takes_one_instruction_for_two_floats_on_sm_100a(settings: Settings) -> None:
    pairs = CANDIDATE.replace(
        "for (int i = 0; i < 16; ++i) values[i / 8][i % 8] *= multiplier;",
        """for (int i = 0; i < 16; i += 2) {
    float* two = &values[i / 8][i % 8];
    const float2 scaled =
        kopt::mul2(make_float2(two[0], two[1]), make_float2(multiplier, multiplier));
    two[0] = scaled.x;
    two[1] = scaled.y;
  }""",
    ).replace("#include <kopt/nvfp4", "#include <kopt/float2_math.cuh>\n#include <kopt/nvfp4")
    assert _instructions(pairs, settings) + 8 <= _instructions(CANDIDATE, settings)


def _instructions(source: str, settings: Settings) -> int:
    """Return how many instructions the kernel has on sm_100a."""
    problem = problems()["nvfp4_quantize"]
    candidate = Candidate(source)
    request = CompileRequest(Case(problem, problem.workloads[0], candidate), archs=("sm_100a",))
    result = compile_candidate(request, settings)
    assert result.status == "passed", result.diagnostics
    return result.builds[0].kernels[0].instructions or 0
