/* kopt: 1
family: async_pipeline
note: "CUDA's own pipeline primitives instead of kopt's cp.async wrapper, two buffers"
where: "B <= 8 and H % 2048 == 0"
launch:
  - kernel: silu_and_mul_pipeline
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=passed level=full
// Mapping: block b owns row b in steps of 2,048 columns; thread t owns 8 columns of each step and
// reads only what it has copied itself, so its own wait is enough and there is no block barrier.
// Shared memory: gates[buffer][thread], 16 bytes each; up needs no staging, it is used at once.

#include <cuda_bf16.h>
#include <cuda_pipeline_primitives.h>

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void __launch_bounds__(256)
    silu_and_mul_pipeline(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  __shared__ uint4 gates[2][256];
  const size_t row = blockIdx.x;
  const uint4* gate_row = reinterpret_cast<const uint4*>(input + row * 2 * H);
  const uint4* up_row = gate_row + H / 8;
  uint4* out_row = reinterpret_cast<uint4*>(out + row * H);
  const int vectors = H / 8;

  __pipeline_memcpy_async(&gates[0][threadIdx.x], &gate_row[threadIdx.x], 16);
  __pipeline_commit();
  for (int at = threadIdx.x, buffer = 0; at < vectors; at += 256, buffer ^= 1) {
    if (at + 256 < vectors) {
      __pipeline_memcpy_async(&gates[buffer ^ 1][threadIdx.x], &gate_row[at + 256], 16);
    }
    __pipeline_commit();       // empty in the last step: the count of groups stays simple
    __pipeline_wait_prior(1);  // the gate of this step is in
    const uint4 gate = gates[buffer][threadIdx.x];
    const uint4 up = up_row[at];
    uint4 packed;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      reinterpret_cast<__nv_bfloat16*>(&packed)[i] =
          silu_mul(reinterpret_cast<const __nv_bfloat16*>(&gate)[i],
                   reinterpret_cast<const __nv_bfloat16*>(&up)[i]);
    }
    out_row[at] = packed;
  }
}
