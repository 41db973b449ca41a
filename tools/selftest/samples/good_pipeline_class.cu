/* kopt: 1
family: async_pipeline
note: "two tiles in flight through the pipeline class of <cuda_pipeline.h>"
where: "B <= 8 and H % 8 == 0"
launch:
  - kernel: silu_and_mul_pipeline
    grid: ceil_div(H, 1024), B
    block: 64
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block (x, b) owns 1,024 columns of row b as two tiles of 512; thread t the 8 from 8 t on.

#include <cuda_bf16.h>
#include <cuda_pipeline.h>

extern "C" __global__ void silu_and_mul_pipeline(const __nv_bfloat16* input, __nv_bfloat16* out,
                                                 int H) {
  __shared__ uint4 gates[2][64], ups[2][64];
  const uint4* row = reinterpret_cast<const uint4*>(input) + size_t(blockIdx.y) * (H / 4);
  nvcuda::experimental::pipeline pipe;
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
    const int at = blockIdx.x * 128 + tile * 64 + threadIdx.x;
    if (at < H / 8) {
      nvcuda::experimental::memcpy_async(gates[tile][threadIdx.x], row[at], pipe);
      nvcuda::experimental::memcpy_async(ups[tile][threadIdx.x], row[H / 8 + at], pipe);
    }
    pipe.commit();
  }
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
    if (tile == 0) {
      pipe.wait_prior<1>();
    } else {
      pipe.wait_prior<0>();
    }
    const int at = blockIdx.x * 128 + tile * 64 + threadIdx.x;
    if (at >= H / 8) break;  // each thread reads what it has copied itself
    uint4 result;
    const auto* g = reinterpret_cast<const __nv_bfloat162*>(&gates[tile][threadIdx.x]);
    const auto* u = reinterpret_cast<const __nv_bfloat162*>(&ups[tile][threadIdx.x]);
    auto* y = reinterpret_cast<__nv_bfloat162*>(&result);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 a = __bfloat1622float2(g[i]), b = __bfloat1622float2(u[i]);
      y[i] = __floats2bfloat162_rn(a.x / (1.0f + __expf(-a.x)) * b.x,
                                   a.y / (1.0f + __expf(-a.y)) * b.y);
    }
    reinterpret_cast<uint4*>(out)[size_t(blockIdx.y) * (H / 8) + at] = result;
  }
}
