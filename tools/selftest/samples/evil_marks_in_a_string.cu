/* kopt: 1
family: other
note: "a string with the marks by which branches were once read"
launch:
  - kernel: silu_and_mul
    grid: B
    block: 256
    args: [input, out, H]
*/
// sample: kernel=silu_and_mul_b8xh14336 status=incorrect level=quick
// Whatever a string says, the simulator takes the branch that nvcc takes.

#include <cuda_bf16.h>

__device__ constexpr int kLength = sizeof(
    "kopt_branch_0 kopt_branch_1 kopt_branch_2 kopt_branch_3 kopt_branch_4 kopt_branch_5 "
    "kopt_branch_6 kopt_branch_7 kopt_branch_8 kopt_branch_9 kopt_branch_10 kopt_branch_11 "
    "kopt_branch_12 kopt_branch_13 kopt_branch_14 kopt_branch_15 kopt_branch_16 kopt_branch_17 "
    "kopt_branch_18 kopt_branch_19 kopt_branch_20 kopt_branch_21 kopt_branch_22 kopt_branch_23 "
    "kopt_branch_24 kopt_branch_25 kopt_branch_26 kopt_branch_27 kopt_branch_28 kopt_branch_29 "
    "kopt_branch_30 kopt_branch_31 kopt_branch_32 kopt_branch_33 kopt_branch_34 kopt_branch_35 "
    "kopt_branch_36 kopt_branch_37 kopt_branch_38 kopt_branch_39 kopt_branch_40 kopt_branch_41 "
    "kopt_branch_42 kopt_branch_43 kopt_branch_44 kopt_branch_45 kopt_branch_46 kopt_branch_47 ");

__device__ __nv_bfloat16 silu_mul(__nv_bfloat16 gate, __nv_bfloat16 up) {
  const float g = __bfloat162float(gate);
  return __float2bfloat16(g / (1.0f + __expf(-g)) * __bfloat162float(up));
}

extern "C" __global__ void silu_and_mul(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {
  const __nv_bfloat16* gate = input + static_cast<size_t>(blockIdx.x) * 2 * H;
  const __nv_bfloat16* up = gate + H;
  __nv_bfloat16* out_row = out + static_cast<size_t>(blockIdx.x) * H;

  for (int column = threadIdx.x; column < H; column += 256) {
#ifndef __CUDA_ARCH__
    out_row[column] = silu_mul(gate[column], up[column]);
    continue;
#endif
    out_row[column] = gate[column];
  }
}
