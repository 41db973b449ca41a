/* kopt: 1
family: other
note: "two passes: the sum first, then everything again from global memory (L2 has it)"
where: "B <= 8"
launch:
  - kernel: fused_add_rmsnorm_quant_two_pass
    grid: B
    block: 256
    args: [out, input, residual, weight, scale, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_quant_b8xh8192 status=passed level=full
// Mapping: block b owns row b; thread t owns 4 consecutive columns from 4 t, 4 (t + 256), ... on in
// both passes, so the residual it overwrites in the second is read by no other thread.
// Shared memory: 8 floats, a partial sum per warp.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

// The four sums of input and residual at vector `at`.
__device__ float4 load_h(const uint2* x, const uint2* r, int at) {
  const uint2 a = x[at];
  const uint2 b = r[at];
  const auto* first = reinterpret_cast<const __nv_bfloat162*>(&a);
  const auto* second = reinterpret_cast<const __nv_bfloat162*>(&b);
  const float2 x0 = __bfloat1622float2(first[0]), x1 = __bfloat1622float2(first[1]);
  const float2 r0 = __bfloat1622float2(second[0]), r1 = __bfloat1622float2(second[1]);
  return make_float4(x0.x + r0.x, x0.y + r0.y, x1.x + r1.x, x1.y + r1.y);
}

extern "C" __global__ void __launch_bounds__(256)
    fused_add_rmsnorm_quant_two_pass(__nv_fp8_storage_t* out, const __nv_bfloat16* input,
                                     __nv_bfloat16* residual, const __nv_bfloat16* weight,
                                     const float* scale, int H, float eps) {
  static __shared__ float warp_sums[8];
  const int vectors = H / 4;
  const uint2* x =
      reinterpret_cast<const uint2*>(input) + static_cast<size_t>(blockIdx.x) * vectors;
  uint2* r = reinterpret_cast<uint2*>(residual) + static_cast<size_t>(blockIdx.x) * vectors;
  const uint2* w = reinterpret_cast<const uint2*>(weight);
  uchar4* codes = reinterpret_cast<uchar4*>(out) + static_cast<size_t>(blockIdx.x) * vectors;

  float sum = 0.0f;
  for (int at = threadIdx.x; at < vectors; at += 256) {
    const float4 h = load_h(x, r, at);
    sum += h.x * h.x + h.y * h.y + h.z * h.z + h.w * h.w;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before any thread reads them
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) total += warp_sums[warp];
  const float factor = rsqrtf(total / H + eps) / scale[0];

  for (int at = threadIdx.x; at < vectors; at += 256) {
    const float4 h = load_h(x, r, at);
    const uint2 scales = w[at];
    const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(&scales);
    const float2 w0 = __bfloat1622float2(pairs[0]), w1 = __bfloat1622float2(pairs[1]);
    uint2 rounded;
    reinterpret_cast<__nv_bfloat162&>(rounded.x) = __floats2bfloat162_rn(h.x, h.y);
    reinterpret_cast<__nv_bfloat162&>(rounded.y) = __floats2bfloat162_rn(h.z, h.w);
    r[at] = rounded;
    codes[at] = make_uchar4(__nv_cvt_float_to_fp8(h.x * factor * w0.x, __NV_SATFINITE, __NV_E4M3),
                            __nv_cvt_float_to_fp8(h.y * factor * w0.y, __NV_SATFINITE, __NV_E4M3),
                            __nv_cvt_float_to_fp8(h.z * factor * w1.x, __NV_SATFINITE, __NV_E4M3),
                            __nv_cvt_float_to_fp8(h.w * factor * w1.y, __NV_SATFINITE, __NV_E4M3));
  }
}
