/* kopt: 1
family: other
note: "split-K: two blocks add halves of k, whose sums go through scratch as bfloat16"
launch:
  - kernel: add_halves
    grid: N // 64, M, 2
    block: 64
    args: [x, weight, halves, M, N, K]
  - kernel: add_up
    grid: M * N // 64
    block: 64
    args: [halves, out, M, N]
where: "N % 64 == 0 and K % 2 == 0"
scratch:
  halves: {dtype: bfloat16, shape: "2, M, N"}
*/
// sample: kernel=gemm_bf16_small_m64xn128xk128 status=incorrect level=quick says="one_rounding"
// Three roundings in the place of one: within two steps, as norms may be, where no sum cancels.

#include <cuda_bf16.h>

extern "C" __global__ void add_halves(const __nv_bfloat16* x, const __nv_bfloat16* weight,
                                      __nv_bfloat16* halves, int M, int N, int K) {
  const int column = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y, half = blockIdx.z;
  float sum = 0.0f;
  for (int k = half * (K / 2); k < (half + 1) * (K / 2); ++k) {
    sum += __bfloat162float(x[row * K + k]) * __bfloat162float(weight[column * K + k]);
  }
  halves[(half * M + row) * N + column] = __float2bfloat16(sum);
}

extern "C" __global__ void add_up(const __nv_bfloat16* halves, __nv_bfloat16* out, int M, int N) {
  const int element = blockIdx.x * 64 + threadIdx.x;
  const float one = __bfloat162float(halves[element]);
  out[element] = __float2bfloat16(one + __bfloat162float(halves[M * N + element]));
}
