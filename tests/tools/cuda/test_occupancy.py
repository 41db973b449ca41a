"""Theoretical occupancy against NVIDIA's own cuda_occupancy.h, compiled with g++."""

import itertools
import subprocess
from pathlib import Path

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.compile_result import KernelResources
from kopt.kernels.plan import Launch
from kopt.tools.cuda.include_tree import cuda_include_folders
from kopt.tools.cuda.occupancy import BlockResources, blocks_per_sm, launch_occupancy

# Reads one case per line, prints the blocks and what each limit alone would allow.
CALCULATOR = r"""
#include <cstdio>
#include <climits>
#include <cuda_occupancy.h>
int main() {
  int major, minor, threads_sm, regs_sm, threads, regs, barriers;
  unsigned long smem_sm, optin, fixed, dynamic;
  while (scanf("%d %d %d %d %lu %lu %d %d %lu %lu %d", &major, &minor, &threads_sm, &regs_sm,
               &smem_sm, &optin, &threads, &regs, &fixed, &dynamic, &barriers) == 11) {
    cudaOccDeviceProp device;
    device.computeMajor = major; device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024; device.maxThreadsPerMultiprocessor = threads_sm;
    device.regsPerBlock = regs_sm; device.regsPerMultiprocessor = regs_sm; device.warpSize = 32;
    device.sharedMemPerBlock = 49152; device.sharedMemPerMultiprocessor = smem_sm;
    device.numSms = 1; device.sharedMemPerBlockOptin = optin;
    device.reservedSharedMemPerBlock = 1024;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = INT_MAX; kernel.numRegs = regs; kernel.sharedSizeBytes = fixed;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = dynamic; kernel.numBlockBarriers = barriers;
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    cudaOccResult result;
    cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, dynamic);
    printf("%d %d %d %d %d %d\n", result.activeBlocksPerMultiprocessor, result.blockLimitWarps,
           result.blockLimitBlocks, result.blockLimitRegs, result.blockLimitSharedMem,
           result.blockLimitBarriers);
  }
}
"""
LIMITS = ("warps", "blocks", "registers", "shared_memory", "barriers")
GRID = list(
    itertools.product(
        (1, 32, 33, 96, 128, 160, 256, 512, 768, 1000, 1024),
        (0, 16, 24, 32, 33, 40, 64, 65, 96, 128, 168, 255),
        (0, 16, 1000, 20480),
        (0, 40000, 49152, 100000, 200000, 232448),
        (0, 1, 3, 16),
    )
)


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "main.cpp").write_text(CALCULATOR, "utf-8")
    program = folder / "main"
    include = cuda_include_folders()[0]
    subprocess.run(["g++", "-I", include, folder / "main.cpp", "-o", program], check=True)
    return program


@pytest.mark.parametrize("name", sorted(load_gpus()))
def test_blocks_and_limiters_equal_nvidia_s_calculator(calculator: Path, name: str) -> None:
    gpu = load_gpus()[name]
    device = (
        *gpu.compute_capability,
        *(gpu.max_threads_per_sm, gpu.registers_per_sm),
        *(gpu.smem_per_sm_bytes, gpu.smem_per_block_optin_bytes),
    )
    lines = "\n".join(" ".join(map(str, (*device, *case))) for case in GRID)
    run = subprocess.run([calculator], input=lines, capture_output=True, text=True, check=True)
    answers = run.stdout.splitlines()
    assert len(answers) == len(GRID)
    for case, answer in zip(GRID, answers, strict=True):
        blocks, *limits = map(int, answer.split())
        found, limiters = blocks_per_sm(BlockResources(*case), gpu)
        assert found == blocks, case
        binding = {limit for limit, most in zip(LIMITS, limits, strict=True) if most == blocks}
        assert set(limiters) == binding, case


def test_a_launch_is_described_on_its_gpu() -> None:
    kernel = KernelResources(
        name="k",
        registers_per_thread=40,
        spill_store_bytes=0,
        spill_load_bytes=0,
        stack_bytes=0,
        static_smem_bytes=512,
        constant_bytes=0,
        barriers=1,
        max_threads_per_block=128,
        parameters=(),
        instructions=None,
    )
    launch = Launch(kernel="k", grid=(100, 3, 1), block=(64, 2, 1), arguments=())
    found = launch_occupancy(launch, kernel, load_gpus()["B200"])
    assert (found.blocks_per_sm, found.warps_per_sm, found.theoretical_occupancy) == (12, 48, 0.75)
    assert found.limiters == ("registers",)
    assert (found.grid_blocks, found.waves) == (300, 300 / (12 * 148))


def test_a_block_that_cannot_be_launched_has_no_occupancy() -> None:
    launch = Launch(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=232449, arguments=()
    )
    blocks = BlockResources(32, 32, 0, launch.dynamic_smem_bytes)
    assert blocks_per_sm(blocks, load_gpus()["H100"]) == (0, ("shared_memory",))
