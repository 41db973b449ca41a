/* kopt: 1
family: other
note: "a class with methods in a namespace"
launch:
  - kernel: softmax
    grid: R
    block: 32
    args: [x, out, C]
*/
// sample: kernel=softmax_rows_r8xc320 status=passed level=full
// Device code as a small library.

namespace rows {
class Softmax {
 public:
  __device__ Softmax(const float* from, int length) : from_(from), length_(length) {}
  __device__ void prepare() {
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < length_; i += 32) most = fmaxf(most, from_[i]);
    most_ = over_warp(most, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < length_; i += 32) sum += expf(from_[i] - most_);
    sum_ = over_warp(sum, [](float a, float b) { return a + b; });
  }
  __device__ float operator[](int i) const { return expf(from_[i] - most_) / sum_; }

 private:
  template <class Operation>
  __device__ static float over_warp(float value, Operation operation) {
    for (int step = 16; step > 0; step /= 2)
      value = operation(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
  }
  const float* from_;
  int length_;
  float most_ = 0.0f, sum_ = 1.0f;
};
}  // namespace rows

extern "C" __global__ void softmax(const float* x, float* out, int C) {
  const size_t first = static_cast<size_t>(blockIdx.x) * C;
  rows::Softmax result(x + first, C);
  result.prepare();
  for (int i = threadIdx.x; i < C; i += 32) out[first + i] = result[i];
}
