/* kopt: 1
family: other
note: "four values a load and a store"
where: "C % 4 == 0"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Rows of a multiple of four values.

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  const float4* row = reinterpret_cast<const float4*>(x + static_cast<size_t>(blockIdx.x) * C);
  float4* to = reinterpret_cast<float4*>(out + static_cast<size_t>(blockIdx.x) * C);
  float most = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < C / 4; i += 32) {
    const float4 v = row[i];
    most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  most = warp_max(most);
  for (int i = threadIdx.x; i < C / 4; i += 32) {
    const float4 v = row[i];
    sum += (__expf(v.x - most) + __expf(v.y - most)) + (__expf(v.z - most) + __expf(v.w - most));
  }
  const float r = 1.0f / warp_sum(sum);
  for (int i = threadIdx.x; i < C / 4; i += 32) {
    const float4 v = row[i];
    to[i] = make_float4(__expf(v.x - most) * r, __expf(v.y - most) * r, __expf(v.z - most) * r,
                        __expf(v.w - most) * r);
  }
}
