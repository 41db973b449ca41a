/* kopt: 1
family: [fp4_intrinsics, register_caching]
note: "one pass: a thread owns a scale block, its 16 values of y wait in registers"
where: "H == 2048"
launch:
  - kernel: add_rmsnorm_fp4quant_one_pass
    grid: B
    block: 128
    args: [input, residual, weight, out, block_scale, global_scale, H, eps]
*/
// sample: kernel=add_rmsnorm_fp4quant_b128xh2048 status=passed level=full
// Mapping: block b owns row b, thread t its scale block t: 16 columns, 32 bytes in, 8 bytes of
// codes and one scale out (H = 16 * 128). Shared memory: 4 floats, a partial sum per warp.

#include <cuda_bf16.h>
#include <kopt/nvfp4_utils.cuh>

struct alignas(16) Vector {
  __nv_bfloat162 pairs[4];
};

extern "C" __global__ void __launch_bounds__(128)
    add_rmsnorm_fp4quant_one_pass(const __nv_bfloat16* input, __nv_bfloat16* residual,
                                  const __nv_bfloat16* weight, unsigned char* out,
                                  __nv_fp8_storage_t* block_scale, const float* global_scale, int H,
                                  float eps) {
  __shared__ float warp_sums[4];
  const size_t block = static_cast<size_t>(blockIdx.x) * (H / 16) + threadIdx.x;
  const auto* x = reinterpret_cast<const Vector*>(input) + 2 * block;
  auto* r = reinterpret_cast<Vector*>(residual) + 2 * block;
  const auto* w = reinterpret_cast<const Vector*>(weight) + 2 * threadIdx.x;

  float y[2][8];
  float sum = 0.0f;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Vector a = x[half], b = r[half];
    Vector rounded;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 first = __bfloat1622float2(a.pairs[i]), second = __bfloat1622float2(b.pairs[i]);
      y[half][2 * i] = first.x + second.x;
      y[half][2 * i + 1] = first.y + second.y;
      sum += y[half][2 * i] * y[half][2 * i] + y[half][2 * i + 1] * y[half][2 * i + 1];
      rounded.pairs[i] = __floats2bfloat162_rn(y[half][2 * i], y[half][2 * i + 1]);
    }
    r[half] = rounded;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  const float total = warp_sums[0] + warp_sums[1] + warp_sums[2] + warp_sums[3];
  const float rstd = rsqrtf(total / H + eps);

  float amax = 0.0f;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Vector scale = w[half];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 s = __bfloat1622float2(scale.pairs[i]);
      y[half][2 * i] *= rstd * s.x;
      y[half][2 * i + 1] *= rstd * s.y;
      amax = fmaxf(amax, fmaxf(fabsf(y[half][2 * i]), fabsf(y[half][2 * i + 1])));
    }
  }
  const unsigned char scale = kopt::block_scale(amax, global_scale[0]);
  const float multiplier = kopt::code_multiplier(scale, global_scale[0]);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < 8; ++i) y[half][i] *= multiplier;
  }
  block_scale[block] = scale;
  reinterpret_cast<uint2*>(out)[block] =
      make_uint2(kopt::floats_to_e2m1x8(y[0]), kopt::floats_to_e2m1x8(y[1]));
}
