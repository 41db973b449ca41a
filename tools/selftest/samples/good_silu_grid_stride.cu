/* kopt: 1
family: grid_shape
note: "a flat index over all elements, strided by the grid, divided into row and column"
where: "B <= 8"
launch:
  - kernel: silu_grid_stride
    grid: min(2 * SM_COUNT, ceil_div(B * H, 256))
    block: 256
    args: [input, out, {int64: "B * H"}, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: thread i of the grid owns the elements i, i + gridDim * blockDim, ...

#include <cuda_bf16.h>

extern "C" __global__ void silu_grid_stride(const __nv_bfloat16* __restrict__ input,
                                            __nv_bfloat16* __restrict__ out, long long n, int H) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
       i += (long long)gridDim.x * blockDim.x) {
    const long long row = i / H, column = i % H;
    const float gate = __bfloat162float(input[row * 2 * H + column]);
    const float up = __bfloat162float(input[row * 2 * H + H + column]);
    out[i] = __float2bfloat16_rn(gate * __frcp_rn(1.0f + __expf(-gate)) * up);
  }
}
