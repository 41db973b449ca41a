/* kopt: 1
family: async_pipeline
note: "TMA brings tiles of gate and up, one thread issues both; results leave by TMA too"
where: "B <= 8 and H % 256 == 0"
tensor_maps:
  input_map: {tensor: input, view: "B * 2, H", box: "1, 256"}
  out_map: {tensor: out, box: "1, 256"}
launch:
  - kernel: silu_and_mul_tma
    grid: H // 256, B
    block: 128
    args: [input_map, out_map]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block (x, b) owns the 256 columns from 256 x on of row b, thread t two of them. In the
// view of (2 B, H), the gate of row b is row 2 b and its up is row 2 b + 1.
// Shared memory: gate, up and result, 512 bytes each, 128-byte aligned; one mbarrier.

#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>

extern "C" __global__ void silu_and_mul_tma(const __grid_constant__ CUtensorMap input_map,
                                            const __grid_constant__ CUtensorMap out_map) {
  __shared__ alignas(128) __nv_bfloat162 gate[128];
  __shared__ alignas(128) __nv_bfloat162 up[128];
  __shared__ alignas(128) __nv_bfloat162 result[128];
  __shared__ kopt::mbarrier_t loaded;
  const int column = blockIdx.x * 256;
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&loaded, 1);
    kopt::fence_mbarrier_init();
    kopt::mbarrier_arrive_expect_tx(&loaded, sizeof gate + sizeof up);
    kopt::tma_load_2d(gate, &input_map, &loaded, column, blockIdx.y * 2);
    kopt::tma_load_2d(up, &input_map, &loaded, column, blockIdx.y * 2 + 1);
  }
  __syncthreads();  // the mbarrier exists before any thread waits for it
  kopt::mbarrier_wait_parity(&loaded, 0);
  const float2 g = __bfloat1622float2(gate[threadIdx.x]);
  const float2 u = __bfloat1622float2(up[threadIdx.x]);
  result[threadIdx.x] =
      __floats2bfloat162_rn(g.x / (1.0f + __expf(-g.x)) * u.x, g.y / (1.0f + __expf(-g.y)) * u.y);
  kopt::fence_proxy_async();  // this thread's result is visible to the copy
  __syncthreads();            // and so is everyone else's
  if (threadIdx.x == 0) {
    kopt::tma_store_2d(&out_map, result, column, blockIdx.y);
    kopt::bulk_commit_group();
    kopt::bulk_wait_group<0>();  // shared memory must outlive the copy
  }
}
