/* kopt: 1
family: grid_shape
note: "one launch: the block that finishes a row last normalizes it, no grid barrier needed"
where: "B <= 8"
scratch:
  partial: {dtype: float32, shape: "B, 4"}
  arrived: {dtype: int32, shape: B, init: zero}
launch:
  - kernel: fused_add_rmsnorm_last_block
    grid: 4, B
    block: 256
    args: [input, residual, weight, partial, arrived, H, eps]
*/
// sample: kernel=fused_add_rmsnorm_b8xh4096 status=passed level=full
// Mapping: block (p, b) sums quarter p of row b; the last of the four to arrive normalizes the row.
// Scratch: partial[b][p], arrived[b]. Shared memory: 256 floats of the tree, one flag.

#include <cuda_bf16.h>

// Thread 0 gets the sum of all; 256 threads call it.
__device__ float block_sum(float value, float* tree) {
  tree[threadIdx.x] = value;
  for (int stride = 128; stride > 0; stride /= 2) {
    __syncthreads();  // the sums of the step before are stored
    if (threadIdx.x < stride) tree[threadIdx.x] += tree[threadIdx.x + stride];
  }
  return tree[0];
}

extern "C" __global__ void fused_add_rmsnorm_last_block(__nv_bfloat16* input,
                                                        __nv_bfloat16* residual,
                                                        const __nv_bfloat16* weight, float* partial,
                                                        int* arrived, int H, float eps) {
  __shared__ float tree[256];
  __shared__ bool is_last;
  const size_t row = static_cast<size_t>(blockIdx.y) * H;
  const int quarter = H / 4;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < quarter; i += 256) {
    const size_t at = row + blockIdx.x * quarter + i;
    const float h = __bfloat162float(input[at]) + __bfloat162float(residual[at]);
    sum += h * h;
  }
  sum = block_sum(sum, tree);
  if (threadIdx.x == 0) {
    partial[blockIdx.y * 4 + blockIdx.x] = sum;
    __threadfence();  // the partial sum is visible before the arrival is
    is_last = atomicAdd(&arrived[blockIdx.y], 1) == 3;
    __threadfence();  // the other partial sums are read after the last arrival
  }
  __syncthreads();       // every thread sees is_last
  if (!is_last) return;  // the same for the whole block

  float total = 0.0f;
  for (int part = 0; part < 4; ++part) total += partial[blockIdx.y * 4 + part];
  const float rstd = rsqrtf(total / H + eps);
  for (int column = threadIdx.x; column < H; column += 256) {
    const float h =
        __bfloat162float(input[row + column]) + __bfloat162float(residual[row + column]);
    residual[row + column] = __float2bfloat16(h);
    input[row + column] = __float2bfloat16(h * rstd * __bfloat162float(weight[column]));
  }
}
