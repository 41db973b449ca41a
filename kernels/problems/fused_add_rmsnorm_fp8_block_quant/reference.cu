/* kopt: 1
family: other
note: "starting point: one block per row, scalar loads, tree reductions, two global-memory passes"
where: "true"
tune: {BLOCK: [256, 128, 512, 1024]}
launch:
  - kernel: fused_add_rmsnorm_fp8_block_quant_kernel
    grid: B
    block: BLOCK
    args: [out, block_scale, normed_out, input, residual, weight, H, HB, BP, eps]
*/
// Mapping: block b owns row b. First pass: thread t sums columns t, t + BLOCK, ... Second pass:
// each group of 128 threads takes one block of 128 columns, one column per thread.
// In place: the second pass overwrites a residual only after the barriers of the first reduction,
// and each element is read and overwritten there by one and the same thread.
// Shared memory: BLOCK floats (4 * BLOCK bytes), first the partial sums of squares, then the
// magnitudes: thread t's at element t, group g's at 128 g to 128 g + 127.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

constexpr int SCALE_BLOCK = 128;
constexpr int GROUPS = BLOCK / SCALE_BLOCK;
constexpr float LEAST_AMAX = 1e-4f;
constexpr float E4M3_MAX = 448.0f;

extern "C" __global__ void fused_add_rmsnorm_fp8_block_quant_kernel(
    __nv_fp8_storage_t* out, float* block_scale, __nv_bfloat16* normed_out,
    const __nv_bfloat16* input, __nv_bfloat16* residual, const __nv_bfloat16* weight, int H, int HB,
    int BP, float eps) {
  __shared__ float partial[BLOCK];
  const size_t row = static_cast<size_t>(blockIdx.x) * H;

  float sum_of_squares = 0.0f;
  for (int column = threadIdx.x; column < H; column += BLOCK) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    sum_of_squares += h * h;
  }
  partial[threadIdx.x] = sum_of_squares;
  __syncthreads();  // all partial sums are in place before any is read
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) {
      partial[threadIdx.x] += partial[threadIdx.x + stride];
    }
    __syncthreads();  // the next step reads sums that other threads wrote in this one
  }
  const float rstd = rsqrtf(partial[0] / H + eps);
  __syncthreads();  // everyone has read the sum before `partial` is used again

  const int group = threadIdx.x / SCALE_BLOCK;
  const int lane = threadIdx.x % SCALE_BLOCK;
  // The bound is the same for all groups, so that every thread meets every barrier: in the last
  // step groups without a block of columns go along with a magnitude of 0.
  for (int first = 0; first < HB; first += GROUPS) {
    const int k = first + group;
    const size_t element = row + static_cast<size_t>(k) * SCALE_BLOCK + lane;
    float normed = 0.0f;
    if (k < HB) {
      const float h = __bfloat162float(input[element]) + __bfloat162float(residual[element]);
      residual[element] = __float2bfloat16(h);
      const __nv_bfloat16 rounded =
          __float2bfloat16(h * rstd * __bfloat162float(weight[k * SCALE_BLOCK + lane]));
      normed_out[element] = rounded;
      normed = __bfloat162float(rounded);
    }
    partial[threadIdx.x] = fabsf(normed);
    __syncthreads();  // the group's magnitudes are in place before any is read
    for (int stride = SCALE_BLOCK / 2; stride > 0; stride /= 2) {
      if (lane < stride) {
        partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + stride]);
      }
      __syncthreads();  // the next step reads maxima that other threads wrote in this one
    }
    const float amax = fmaxf(partial[group * SCALE_BLOCK], LEAST_AMAX);
    if (k < HB) {
      out[element] = __nv_cvt_float_to_fp8(normed * (E4M3_MAX / amax), __NV_SATFINITE, __NV_E4M3);
      if (lane == 0) {
        block_scale[static_cast<size_t>(k) * BP + blockIdx.x] = amax / E4M3_MAX;
      }
    }
    __syncthreads();  // everyone has read the maximum before the next step overwrites it
  }
}
