/* kopt: 1
family: other
note: "angles on the fly, sincosf"
where: "C % 2 == 0"
flags: {fast_math: false}
launch:
  - kernel: rotate
    grid: R
    block: 64
    args: [x, position, frequency, out, C]
*/
// sample: kernel=rotate_pairs_r6xc128 status=passed level=full
// At position 100,000 only the precise functions are exact enough.

extern "C" __global__ void rotate(const float* x, const int* position, const float* frequency,
                                  float* out, int C) {
  const int half = C / 2;
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float* to = out + static_cast<size_t>(blockIdx.x) * C;
  const float at = static_cast<float>(position[blockIdx.x]);
  for (int i = threadIdx.x; i < half; i += 64) {
    float sine, cosine;
    sincosf(at * frequency[i], &sine, &cosine);
    to[i] = row[i] * cosine - row[i + half] * sine;
    to[i + half] = row[i] * sine + row[i + half] * cosine;
  }
}
