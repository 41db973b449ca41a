"""The machine code of <kopt/cluster_exchange.cuh>: what blocks send one another needs no fence."""

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.nvdisasm import list_instructions
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import cubin_of

pytestmark = pytest.mark.slow  # a compile for each architecture
EXCHANGE = """
#include <cooperative_groups.h>
#include <kopt/cluster_exchange.cuh>
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ float parts[8];
  __shared__ kopt::mbarrier_t arrived;
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&arrived, 1);
    kopt::mbarrier_arrive_expect_tx(&arrived, sizeof parts);
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  ARRIVE;
  kopt::cluster_wait();
  if (threadIdx.x < 8)
    kopt::st_async(&parts[kopt::cluster_rank()], in[0], &arrived, threadIdx.x);
  kopt::mbarrier_wait_parity_cluster(&arrived, 0);
  out[threadIdx.x] = parts[threadIdx.x % 8];
}
"""
RELAXED = "kopt::cluster_arrive_relaxed()"
ORDERING = "cooperative_groups::this_cluster().barrier_arrive()"


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(("arrive", "fences"), [(RELAXED, False), (ORDERING, True)])
def test_only_the_arrival_that_orders_memory_has_a_fence(
    arch: str, arrive: str, fences: bool, settings: Settings, toolchain: FoundToolchain
) -> None:
    source = EXCHANGE.replace("ARRIVE", arrive)
    listing = list_instructions(cubin_of(source, settings, arch), toolchain, settings)
    assert listing is not None
    opcodes = [word for instruction in listing["k"] for word in instruction.split()[:2]]
    assert {"UCGABAR_ARV", "UCGABAR_WAIT", "STAS"} <= set(opcodes)
    assert any(opcode.startswith("MEMBAR") for opcode in opcodes) is fences
