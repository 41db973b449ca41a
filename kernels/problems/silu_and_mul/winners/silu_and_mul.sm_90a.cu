/* kopt: 1
family: [thread_utilization, vectorization, cache_policy]
note: >-
  8 columns a thread and a row over many blocks, so that 8 rows fill the machine, too. Up to 512 rows loads and stores
  leave L1 and L2 early. The next launch may start at entry up to 16 rows, beyond once this one's loads are on their
  way.
where: "H % 2048 == 0 and B < 65536"
tune: {BLOCK: [128, 32, 64, 256], HINT: [2, 0, 1], TRIGGER: [1, 0]}
variants:
  - when: "B <= 16"
    set: {BLOCK: 32, HINT: 2, TRIGGER: 0}
    launch:
      - kernel: silu_rows
        grid: ceil_div(H, 8 * BLOCK), B
        block: BLOCK
        pdl: true
        args: [input, out, H]
  - when: "B <= 512"
    set: {BLOCK: 128, HINT: 2, TRIGGER: 1}
    launch:
      - kernel: silu_rows
        grid: ceil_div(H, 8 * BLOCK), B
        block: BLOCK
        pdl: true
        args: [input, out, H]
  - when: "true"
    set: {BLOCK: 128, HINT: 0, TRIGGER: 1}
    launch:
      - kernel: silu_rows
        grid: ceil_div(H, 8 * BLOCK), B
        block: BLOCK
        pdl: true
        args: [input, out, H]
*/
// Mapping: block (c, b) owns 8 BLOCK columns of row b, a thread 8 of them: one 16 byte load of the gate, one of the
// other half, one store.
#include <cuda_bf16.h>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>

struct alignas(16) Vector {
  unsigned pairs[4];
};
// A bf16 is the upper half of an fp32: the low one of a pair is shifted there, the high one masked.
__device__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ Vector get(const Vector* at) {
  if (HINT < 1) return *at;
  const uint4 v = kopt::load_streaming_16(at);
  return *reinterpret_cast<const Vector*>(&v);
}
__device__ void put(Vector* at, const Vector& v) {
  if (HINT >= 2) {
    kopt::store_streaming_16(at, *reinterpret_cast<const uint4*>(&v));
  } else {
    *at = v;
  }
}
__device__ float silu(float x) { return __fdividef(x, 1.0f + __expf(-x)); }

extern "C" __global__ void __launch_bounds__(BLOCK)
    silu_rows(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
  const int column = (blockIdx.x * BLOCK + threadIdx.x) * 8;
  if (column >= H) return;
  const size_t row = static_cast<size_t>(blockIdx.y) * H;
  const __nv_bfloat16* gate = input + 2 * row + column;
  kopt::griddepcontrol_wait();
  const Vector g = get(reinterpret_cast<const Vector*>(gate));
  const Vector u = get(reinterpret_cast<const Vector*>(gate + H));
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
  Vector y;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    y.pairs[i] = pack(silu(low_of(g.pairs[i])) * low_of(u.pairs[i]),
                      silu(high_of(g.pairs[i])) * high_of(u.pairs[i]));
  }
  put(reinterpret_cast<Vector*>(out + row + column), y);
}
