"""What an exported launcher asks of the CUDA runtime, recorded by a stand-in for it."""

import struct
import subprocess
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.include_tree import cuda_include_folders
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.export.device_code import device_code
from kopt.tools.export.exported_kernel import gencode, nvcc_flags
from kopt.tools.export.folder_files import source_files
from kopt.tools.export.routes import plan_routes
from kopt.tools.export.signature import Signature
from support.exports import exported_tiny, write_files
from support.tiny_problem import tiny_problem

pytestmark = pytest.mark.slow  # exports are compiled and run

SUPPORT = Path(__file__).parents[2] / "support"
SOURCE = """\
/* kopt: 1
family: other
where: "B <= 8"
tune: {BLOCK: [128, 256]}
scratch:
  sums: {dtype: float32, shape: "B, 3", init: zero}
  rest: {dtype: uint8, shape: H}
launch:
  - {kernel: scale_rows, grid: "B, ceil_div(H, 48)", block: "BLOCK // 2, 2", pdl: true,
     cluster: "2", smem: "1024 * 64", carveout: max_shared, args: [x, out, H, scale]}
  - {kernel: scale_rows, grid: "SM_COUNT * blocks_per_sm", block: BLOCK, cooperative: true,
     smem: "B * 16", args: [x, out, H, scale]}
  - {kernel: sum_rows, grid: "align_up(H, 40) // 8, 2", block: "32, 2, 4", pdl: true,
     cluster: "2, 2", carveout: max_l1,
     args: [sums, rest, weight, {int32: "B - H"}, {int64: "HB * 2"}]}
*/
#include <cuda_bf16.h>
extern "C" __global__ void scale_rows(const float* x, float* out, int H, float scale) {
  out[blockIdx.x * H + threadIdx.x] = x[blockIdx.x * H + threadIdx.x] * scale;
}
extern "C" __global__ void sum_rows(const float* sums, unsigned char* rest,
                                    const __nv_bfloat16* weight, int less, long long twice) {
  rest[threadIdx.x] = sums[less] + twice + __bfloat162float(weight[0]);
}
"""
MAIN = """\
#include <cstdio>
#include "scale_rows.h"
extern int recorded_arguments;
int main() {
  scale_rows::Params params;
  params.B = 8;
  params.H = 64;
  params.x = reinterpret_cast<void*>(4096);
  params.weight = reinterpret_cast<void*>(8192);
  params.out = reinterpret_cast<void*>(12288);
  params.scratch = reinterpret_cast<void*>(1 << 20);
  params.scale = 0.5f;
  std::printf("scratch %zu\\n", scratch_bytes(params));
  recorded_arguments = 4;
  return launch(params, reinterpret_cast<cudaStream_t>(77));
}
"""
HALF = struct.unpack("<I", struct.pack("<f", 0.5))[0]
LESS = (8 - 64) % 2**32


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, settings: Settings, toolchain: FoundToolchain
) -> list[str]:
    """Return every call of the runtime that one call of the launcher makes."""
    folder = tmp_path_factory.mktemp("launches")
    exported = exported_tiny(tiny_problem(tmp_path_factory.mktemp("problem")), SOURCE)
    code = device_code(exported.candidate.source)
    signature = Signature(exported, code.alignment_bytes)
    files = source_files(signature, plan_routes(exported), code)
    write_files({**files, "main.cpp": MAIN}, folder)
    nvcc = [str(toolchain.nvcc), "-ccbin", str(toolchain.gxx), *nvcc_flags(exported)]
    built = [str(folder / "route.o"), str(folder / "scale_rows_all.cu")]
    subprocess.run([*nvcc, gencode(exported), "-c", "-o", *built], check=True)
    includes = [f"-I{path}" for path in (folder, *cuda_include_folders())]
    sources = [folder / "main.cpp", SUPPORT / "recording_cudart.cpp", folder / "scale_rows.cu"]
    words = [settings.gxx, "-std=c++17", *includes, str(folder / "route.o"), "-x", "c++"]
    program = folder / "program"
    subprocess.run([*words, *map(str, sources), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_scratch_is_laid_out_and_zeroed_first(recorded: list[str]) -> None:
    assert recorded[:2] == ["scratch 512", f"memset {1 << 20} 0 96 77"]


def test_a_launch_behind_a_fill_depends_on_nothing_and_has_every_other_attribute(
    recorded: list[str],
) -> None:
    name = "_ZN10scale_rows3all10scale_rowsEPKfPfif"
    assert recorded[2:4] == [
        f"attribute {name} 8 65536",
        f"launch {name} grid 8 2 1 block 64 2 1 smem 65536 stream 77 cluster 2 1 1 carveout 100"
        f" args 4096 12288 64 {HALF}",
    ]


def test_a_grid_by_occupancy_fills_the_device(recorded: list[str]) -> None:
    assert recorded[4] == "occupancy 128 128"
    assert " grid 30 1 1 block 128 1 1 smem 128 stream 77 cooperative 1 args" in recorded[5]


def test_a_later_launch_is_dependent(recorded: list[str]) -> None:
    assert " grid 10 2 1 block 32 2 4 smem 0 stream 77 cluster 2 2 1" in recorded[6]
    assert recorded[6].endswith(
        f" carveout 0 programmatic 1 args {1 << 20} {(1 << 20) + 256} 8192 {LESS}"
    )
    assert len(recorded) == 7
