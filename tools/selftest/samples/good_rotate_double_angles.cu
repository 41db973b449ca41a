/* kopt: 1
family: other
note: "sines and cosines in float64"
where: "C % 2 == 0"
flags: {fast_math: false}
launch:
  - kernel: rotate
    grid: R
    block: 64
    args: [x, position, frequency, out, C]
*/
// sample: kernel=rotate_pairs_r6xc128 status=passed level=full
// The angle stays a float32 product, as the problem says.

extern "C" __global__ void rotate(const float* x, const int* position, const float* frequency,
                                  float* out, int C) {
  const int half = C / 2;
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < half; i += 64) {
    const float angle = __fmul_rn(static_cast<float>(position[blockIdx.x]), frequency[i]);
    double sine, cosine;
    sincos(static_cast<double>(angle), &sine, &cosine);
    const double first = x[row + i], second = x[row + half + i];
    out[row + i] = static_cast<float>(first * cosine - second * sine);
    out[row + half + i] = static_cast<float>(first * sine + second * cosine);
  }
}
