/* kopt: 1
family: grid_shape
note: "the first block of a row clears its sum, to which the other blocks may have added by then"
where: "B <= 8"
scratch: {row_sums: {dtype: float32, shape: B}}
launch:
  - kernel: add_row_sums
    grid: ceil_div(H, 1024), B
    block: 128
    args: [input, residual, row_sums, H]
  - kernel: normalize_rows
    grid: ceil_div(H, 1024), B
    block: 128
    args: [input, residual, weight, row_sums, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=data_race level=quick says=row_sums
// Blocks that run one after another give the right sum. The barrier orders the first block alone.

#include <cuda_bf16.h>

struct alignas(16) Vector {
  __nv_bfloat162 pairs[4];
};

extern "C" __global__ void add_row_sums(__nv_bfloat16* input, __nv_bfloat16* residual,
                                        float* row_sums, int H) {
  const int column = blockIdx.x * 1024 + threadIdx.x * 8;
  const size_t at = (static_cast<size_t>(blockIdx.y) * H + column) / 8;
  float sum = 0.0f;
  if (blockIdx.x == 0 && threadIdx.x == 0) row_sums[blockIdx.y] = 0.0f;  // <- here
  __syncthreads();
  if (column < H) {
    const Vector x = reinterpret_cast<const Vector*>(input)[at];
    const Vector r = reinterpret_cast<const Vector*>(residual)[at];
    for (int i = 0; i < 4; ++i) {
      const float2 a = __bfloat1622float2(x.pairs[i]);
      const float2 b = __bfloat1622float2(r.pairs[i]);
      sum += (a.x + b.x) * (a.x + b.x) + (a.y + b.y) * (a.y + b.y);
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(&row_sums[blockIdx.y], sum);  // <- here
}

extern "C" __global__ void normalize_rows(__nv_bfloat16* input, __nv_bfloat16* residual,
                                          const __nv_bfloat16* weight, float* row_sums, int H,
                                          float eps) {
  const int column = blockIdx.x * 1024 + threadIdx.x * 8;
  if (column >= H) return;
  const size_t at = (static_cast<size_t>(blockIdx.y) * H + column) / 8;
  const float rstd = rsqrtf(row_sums[blockIdx.y] / H + eps);
  Vector x = reinterpret_cast<Vector*>(input)[at];
  Vector r = reinterpret_cast<Vector*>(residual)[at];
  const Vector w = reinterpret_cast<const Vector*>(weight)[column / 8];
  for (int i = 0; i < 4; ++i) {
    const float2 a = __bfloat1622float2(x.pairs[i]);
    const float2 b = __bfloat1622float2(r.pairs[i]);
    const float2 scale = __bfloat1622float2(w.pairs[i]);
    const float2 h = make_float2(a.x + b.x, a.y + b.y);
    r.pairs[i] = __floats2bfloat162_rn(h.x, h.y);
    x.pairs[i] = __floats2bfloat162_rn(h.x * rstd * scale.x, h.y * rstd * scale.y);
  }
  reinterpret_cast<Vector*>(residual)[at] = r;
  reinterpret_cast<Vector*>(input)[at] = x;
}
