"""Kernels of one warpgroup that run a row of tcgen05 each: what goes in, what is kept of it."""

from collections.abc import Sequence

import numpy as np

from .sim_run import Array, SimCase
from .tensor_layouts import LANES, PLACE_BYTES

HELPERS = """
using u32 = unsigned;
__device__ u32 quarter(u32 address) { return address + (threadIdx.x / 32 << 21); }
__device__ void store_word(u32 address, u32 value) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(address), "r"(value)
               : "memory");
}
__device__ u32 load_word(u32 address) {
  u32 value;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(value) : "r"(address)
               : "memory");
  return value;
}
__device__ void wait_loads() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ void wait_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
__device__ u32 allocate(u32* place) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(place));
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(at)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  __syncthreads();
  return *place;
}
__device__ void free_all(u32 address) {
  __syncthreads();
  if (threadIdx.x < 32)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" ::"r"(address));
}
"""
"""Words of tensor memory, and all of its columns."""
PROGRAM = """
using u64 = unsigned long long;
__device__ void fill(u32* to, const u32* from, int words) {
  for (int i = threadIdx.x; i < words; i += 128) to[i] = from[i];
}
__device__ u32 at_shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void wait(u64* bar, u32 parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               " @p bra done; bra again; done: }" ::"r"(at_shared(bar)), "r"(parity) : "memory");
}
__device__ void commit(u64* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               ::"r"(at_shared(bar)) : "memory");
}
__device__ void before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
"""
"""What threads wait for, and tell each other."""
GIVEN_AWAY = (
    'wait_stores(); before_sync(); asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'
    " __syncthreads();"
)
"""All that was stored is there for the thread that goes on."""


def stored(column: int, columns: int, first: int) -> str:
    """Return what stores words of the input, by lane and column, to tensor memory."""
    return (
        f"for (int c = 0; c < {columns}; ++c)"
        f" store_word(base_q + {column} + c, in[{first} + threadIdx.x * {columns} + c]);"
    )


def taken_back(number: int, columns: int) -> str:
    """Return what waits for the mbarrier of a row and keeps the first columns."""
    return (
        f"wait(bar, {number % 2}); after_sync();\n"
        f"for (int c = 0; c < {columns}; ++c)"
        f" out[threadIdx.x * {columns} + c] = load_word(base_q + c);\n"
        "wait_loads(); before_sync(); __syncthreads(); after_sync();"
    )


def row_function(number: int, lines: Sequence[str]) -> str:
    """Return the function of a row, whose tiles lie in shared memory."""
    return (
        f"__device__ void row_{number}(const u32* in, u32* out, u32* tile, u64* bar, u32 all) {{\n"
        "  const u64 base = (at_shared(tile) & 0x3ffff) >> 4;\n"
        f"  const u32 base_q = quarter(all);\n  {chr(10).join(lines)}\n}}\n"
    )


def rows_case(functions: Sequence[str], words: Array, outputs: int) -> SimCase:
    """Return one kernel that runs the functions of rows on the words that they read."""
    calls = [f"  row_{n}(in, out, tile, &bar, all);" for n in range(len(functions))]
    source = "".join((HELPERS, PROGRAM, *functions)) + (
        'extern "C" __global__ void __launch_bounds__(128) k(const u32* in, u32* out) {\n'
        "  extern __shared__ __align__(1024) u32 tile[];\n"
        "  __shared__ u32 place;\n  __shared__ u64 bar;\n"
        "  if (threadIdx.x == 0)\n"
        '    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at_shared(&bar)));\n'
        "  const u32 all = allocate(&place);\n" + "\n".join(calls) + "\n  free_all(all);\n}"
    )
    return SimCase(
        source,
        inputs={"in": words.view(np.int32)},
        outputs={"out": np.zeros(outputs, np.int32)},
        block=(LANES, 1, 1),
        smem=2 * PLACE_BYTES,
    )
