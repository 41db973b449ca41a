/* kopt: 1
family: grid_shape
note: "few long rows: PARTS blocks share a row, a second kernel combines their partial sums"
where: "B <= 8"
tune: {PARTS: [8, 4]}
scratch: {partial: {dtype: float32, shape: "B, PARTS"}}
launch:
  - kernel: partial_sums
    grid: PARTS, B
    block: 256
    args: [input, residual, partial, H]
  - kernel: normalize
    grid: PARTS, B
    block: 256
    args: [out, input, residual, weight, scale, partial, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_quant_b8xh8192 status=passed level=full
// Mapping, both kernels: block (p, b) owns columns p H / PARTS to (p + 1) H / PARTS - 1 of row b;
// thread t owns every 256th of them from t on. The end of the first kernel is the barrier between
// the blocks. Scratch: partial[b][p].

#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void partial_sums(const __nv_bfloat16* input, __nv_bfloat16* residual,
                                        float* partial, int H) {
  __shared__ float warp_sums[8];
  const size_t row = static_cast<size_t>(blockIdx.y) * H;
  const int first = blockIdx.x * (H / PARTS);
  float sum = 0.0f;
  for (int column = first + threadIdx.x; column < first + H / PARTS; column += 256) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    sum += h * h;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();  // all warps have stored their sums before thread 0 reads them
  if (threadIdx.x == 0) {
    float total = 0.0f;
    for (int warp = 0; warp < 8; ++warp) total += warp_sums[warp];
    partial[blockIdx.y * PARTS + blockIdx.x] = total;
  }
}

extern "C" __global__ void normalize(__nv_fp8_storage_t* out, const __nv_bfloat16* input,
                                     __nv_bfloat16* residual, const __nv_bfloat16* weight,
                                     const float* scale, float* partial, int H, float eps) {
  float total = 0.0f;
  for (int part = 0; part < PARTS; ++part) total += partial[blockIdx.y * PARTS + part];
  const float factor = rsqrtf(total / H + eps) / scale[0];
  const size_t row = static_cast<size_t>(blockIdx.y) * H;
  const int first = blockIdx.x * (H / PARTS);
  for (int column = first + threadIdx.x; column < first + H / PARTS; column += 256) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    out[row + column] = __nv_cvt_float_to_fp8(h * factor * __bfloat162float(weight[column]),
                                              __NV_SATFINITE, __NV_E4M3);
  }
}
