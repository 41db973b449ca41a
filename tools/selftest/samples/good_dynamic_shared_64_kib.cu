/* kopt: 1
family: smem_tiling
note: "two rows of h wait in 64 KiB of dynamic shared memory between the sum and the norm"
where: "B <= 8"
launch:
  - kernel: fused_add_rmsnorm_quant_shared
    grid: ceil_div(B, 2)
    block: 128, 2
    smem: 2 * H * 4
    args: [out, input, residual, weight, scale, B, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_quant_b8xh8192 status=passed level=full
// Mapping: block x owns rows 2 x and 2 x + 1, its threads of y = 0 and 1; thread t owns every 128th
// pair of columns. Shared memory: h[y][column], H floats a row; then a partial sum per warp.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern __shared__ float2 h_rows[];

extern "C" __global__ void __launch_bounds__(256)
    fused_add_rmsnorm_quant_shared(__nv_fp8_storage_t* out, const __nv_bfloat16* input,
                                   __nv_bfloat16* residual, const __nv_bfloat16* weight,
                                   const float* scale, int B, int H, float eps) {
  __shared__ float warp_sums[2][4];
  const int row = blockIdx.x * 2 + threadIdx.y;
  const bool has_row = row < B;  // threads without a row still meet the barrier
  const int pairs = H / 2;
  const size_t first = static_cast<size_t>(row) * pairs;
  const auto* x = reinterpret_cast<const __nv_bfloat162*>(input) + first;
  auto* r = reinterpret_cast<__nv_bfloat162*>(residual) + first;
  float2* h_row = h_rows + threadIdx.y * pairs;

  float sum = 0.0f;
  for (int pair = threadIdx.x; has_row && pair < pairs; pair += 128) {
    const float2 a = __bfloat1622float2(x[pair]), b = __bfloat1622float2(r[pair]);
    const float2 h = make_float2(a.x + b.x, a.y + b.y);
    h_row[pair] = h;
    sum += h.x * h.x + h.y * h.y;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.y][threadIdx.x / 32] = sum;
  __syncthreads();  // all partial sums are stored; h is read by the thread that stored it
  if (!has_row) return;

  const float* sums = warp_sums[threadIdx.y];
  const float factor = rsqrtf((sums[0] + sums[1] + sums[2] + sums[3]) / H + eps) / scale[0];
  for (int pair = threadIdx.x; pair < pairs; pair += 128) {
    const float2 h = h_row[pair];
    const float2 w = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(weight)[pair]);
    r[pair] = __floats2bfloat162_rn(h.x, h.y);
    reinterpret_cast<__nv_fp8x2_storage_t*>(out)[first + pair] = __nv_cvt_float2_to_fp8x2(
        make_float2(h.x * factor * w.x, h.y * factor * w.y), __NV_SATFINITE, __NV_E4M3);
  }
}
