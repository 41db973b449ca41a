/* kopt: 1
family: other
note: "angles on the fly, sinf and cosf"
where: "C % 2 == 0"
flags: {fast_math: false}
launch:
  - kernel: rotate
    grid: R
    block: 64
    args: [x, position, frequency, out, C]
*/
// sample: kernel=rotate_pairs_r6xc128 status=passed level=full
// Two calls; tan of the half angle is not needed.

extern "C" __global__ void rotate(const float* x, const int* position, const float* frequency,
                                  float* out, int C) {
  const int half = C / 2;
  const float* row = x + static_cast<size_t>(blockIdx.x) * C;
  float* to = out + static_cast<size_t>(blockIdx.x) * C;
  const float at = static_cast<float>(position[blockIdx.x]);
  for (int i = threadIdx.x; i < half; i += 64) {
    const float angle = at * frequency[i];
    const float sine = sinf(angle), cosine = cosf(angle);
    to[i] = row[i] * cosine - row[i + half] * sine;
    to[i + half] = row[i] * sine + row[i + half] * cosine;
  }
}
