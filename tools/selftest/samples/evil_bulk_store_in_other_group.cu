/* kopt: 1
family: async_pipeline
note: "waits for its bulk stores as if they were copies by cp.async"
where: "B <= 8 and H <= 4096"
specialize: [H]
launch:
  - kernel: fused_add_rmsnorm_bulk
    grid: B
    block: 256
    args: [input, residual, weight, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=incorrect level=quick
// cp.async and bulk stores have groups of their own: nothing waits for the stores, and the shared
// memory ends with the block.

#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>
#include <kopt/cp_async.cuh>

constexpr int PAIRS = KOPT_H / 2;

extern "C" __global__ void __launch_bounds__(256)
    fused_add_rmsnorm_bulk(__nv_bfloat16* input, __nv_bfloat16* residual,
                           const __nv_bfloat16* weight, float eps) {
  __shared__ alignas(16) __nv_bfloat162 x[PAIRS];
  __shared__ alignas(16) __nv_bfloat162 r[PAIRS];
  __shared__ float warp_sums[8];
  __shared__ kopt::mbarrier_t loaded;
  __nv_bfloat16* x_row = input + static_cast<size_t>(blockIdx.x) * KOPT_H;
  __nv_bfloat16* r_row = residual + static_cast<size_t>(blockIdx.x) * KOPT_H;
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&loaded, 1);
    kopt::fence_mbarrier_init();
    kopt::mbarrier_arrive_expect_tx(&loaded, sizeof x + sizeof r);
    kopt::bulk_load(x, x_row, sizeof x, &loaded);
    kopt::bulk_load(r, r_row, sizeof r, &loaded);
  }
  __syncthreads();  // the mbarrier exists before any thread waits for it
  kopt::mbarrier_wait_parity(&loaded, 0);

  float sum = 0.0f;
  for (int pair = threadIdx.x; pair < PAIRS; pair += 256) {
    const float2 a = __bfloat1622float2(x[pair]), b = __bfloat1622float2(r[pair]);
    sum += (a.x + b.x) * (a.x + b.x) + (a.y + b.y) * (a.y + b.y);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) total += warp_sums[warp];
  const float rstd = rsqrtf(total / KOPT_H + eps);

  for (int pair = threadIdx.x; pair < PAIRS; pair += 256) {
    const float2 a = __bfloat1622float2(x[pair]), b = __bfloat1622float2(r[pair]);
    const float2 w = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(weight)[pair]);
    const float2 h = make_float2(a.x + b.x, a.y + b.y);
    r[pair] = __floats2bfloat162_rn(h.x, h.y);
    x[pair] = __floats2bfloat162_rn(h.x * rstd * w.x, h.y * rstd * w.y);
  }
  kopt::fence_proxy_async();  // this thread's results are visible to the copies
  __syncthreads();            // and so are everyone else's
  if (threadIdx.x == 0) {
    kopt::bulk_store(x_row, x, sizeof x);
    kopt::bulk_store(r_row, r, sizeof r);
    kopt::cp_async_commit_group();
    kopt::cp_async_wait_group<0>();
  }
}
