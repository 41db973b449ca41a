/* kopt: 1
family: other
note: "sine and cosine from the tangent of half the angle"
where: "C % 2 == 0"
flags: {fast_math: false}
launch:
  - kernel: rotate
    grid: R
    block: 64
    args: [x, position, frequency, out, C]
*/
// sample: kernel=rotate_pairs_r6xc128 status=passed level=full
// t = tan(a / 2): sin = 2t / (1 + t^2), cos = (1 - t^2) / (1 + t^2).

extern "C" __global__ void rotate(const float* x, const int* position, const float* frequency,
                                  float* out, int C) {
  const int half = C / 2;
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float* to = out + static_cast<size_t>(blockIdx.x) * C;
  const float at = static_cast<float>(position[blockIdx.x]);
  for (int i = threadIdx.x; i < half; i += 64) {
    const double t = tan(0.5 * static_cast<double>(at * frequency[i]));
    const float sine = static_cast<float>(2.0 * t / (1.0 + t * t));
    const float cosine = static_cast<float>((1.0 - t * t) / (1.0 + t * t));
    to[i] = row[i] * cosine - row[i + half] * sine;
    to[i + half] = row[i] * sine + row[i + half] * cosine;
  }
}
