/* kopt: 1
family: async_pipeline
note: "two launches; the second brings tiles of the scratch buffer in by TMA"
where: "B <= 8 and H % 256 == 0"
scratch: {product: {dtype: float32, shape: "B, H"}}
tensor_maps:
  product_map: {tensor: product, box: "1, 256"}
launch:
  - kernel: multiply
    grid: H // 256, B
    block: 256
    args: [input, product, H]
  - kernel: narrow
    grid: H // 256, B
    block: 256
    args: [product_map, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block (x, b) owns the 256 columns from 256 x on of row b, thread t one of them.
// Shared memory of `narrow`: a tile of 1 KiB, 128-byte aligned; one mbarrier.

#include <cuda_bf16.h>
#include <kopt/bulk_copy.cuh>

extern "C" __global__ void multiply(const __nv_bfloat16* input, float* product, int H) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  const size_t row = blockIdx.y;
  const float gate = __bfloat162float(input[2 * row * H + column]);
  const float up = __bfloat162float(input[(2 * row + 1) * H + column]);
  product[row * H + column] = gate / (1.0f + __expf(-gate)) * up;
}

extern "C" __global__ void narrow(const __grid_constant__ CUtensorMap product_map,
                                  __nv_bfloat16* out, int H) {
  __shared__ alignas(128) float tile[256];
  __shared__ kopt::mbarrier_t loaded;
  const int column = blockIdx.x * 256;
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&loaded, 1);
    kopt::fence_mbarrier_init();
    kopt::mbarrier_arrive_expect_tx(&loaded, sizeof tile);
    kopt::tma_load_2d(tile, &product_map, &loaded, column, blockIdx.y);
  }
  __syncthreads();  // the mbarrier exists before any thread waits for it
  kopt::mbarrier_wait_parity(&loaded, 0);
  const size_t row = blockIdx.y;
  out[row * H + column + threadIdx.x] = __float2bfloat16(tile[threadIdx.x]);
}
