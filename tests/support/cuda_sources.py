"""Small CUDA sources for the compile tests, and the compile of one of them."""

import subprocess
from functools import lru_cache
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.cuda.compile_job import CompileContext, CompileJob, CompilerRun
from kopt.tools.cuda.nvcc import run_nvcc
from kopt.tools.cuda.toolchain import find_toolchain

SCALE = """
extern "C" __global__ void __launch_bounds__(128)
scale(const float* x, float* y, int n, long long m) {
  __shared__ float tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < m) y[i] = tile[127 - threadIdx.x] * 2.0f;
}
"""

# One thread owns 16 consecutive elements: a block of NVFP4 with its e4m3 scale.
FP4_QUANTIZE = """
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
extern "C" __global__ void __launch_bounds__(256)
quantize(const __nv_bfloat16* x, unsigned char* codes, unsigned char* scales, const float* g,
         int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 16 >= n) return;
  float v[16], largest = 0.0f;
  #pragma unroll
  for (int k = 0; k < 16; k++) {
    v[k] = __bfloat162float(x[i * 16 + k]);
    largest = fmaxf(largest, fabsf(v[k]));
  }
  __nv_fp8_storage_t q = __nv_cvt_float_to_fp8(*g * (largest / 6.0f), __NV_SATFINITE, __NV_E4M3);
  float s = __half2float(__half(__nv_cvt_fp8_to_halfraw(q, __NV_E4M3)));
  float r = s == 0.0f ? 0.0f : *g / s;
  scales[i] = q;
  #pragma unroll
  for (int k = 0; k < 8; k++) {
    float2 pair = make_float2(v[2 * k] * r, v[2 * k + 1] * r);
    codes[i * 8 + k] = __nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest);
  }
}
"""


@lru_cache
def compiled(source: str, settings: Settings, arch: str = "sm_90a") -> CompilerRun:
    """Return nvcc's run on `source`, past the cache."""
    job = CompileJob(source=source, plan_assertions="", arch=arch)
    return run_nvcc(job, CompileContext("nvcc", find_toolchain(settings), settings))


def cubin_of(source: str, settings: Settings, arch: str = "sm_90a") -> bytes:
    """Return the cubin of a source that compiles."""
    run = compiled(source, settings, arch)
    assert run.cubin is not None, run.log
    return run.cubin


def as_script(path: Path, text: str) -> Path:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


def assert_nvcc_takes(source: str, arch: str, folder: Path, settings: Settings) -> None:
    """Compile `source` in `folder`, without optimization: what is no PTX of `arch` is refused.

    A hundred instructions of tensor cores take 13 s with it and 2 s without.
    """
    (folder / "taken.cu").write_text(source, "utf-8")
    words = [str(find_toolchain(settings).nvcc), f"-arch={arch}", "-std=c++20", "-G", "-cubin"]
    subprocess.run([*words, "-o", "taken.cubin", "taken.cu"], cwd=folder, check=True)
