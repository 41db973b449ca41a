/* kopt: 1
family: other
note: "whole turns taken off in float64, then fast sines"
where: "C % 2 == 0"
flags: {fast_math: false}
launch:
  - kernel: rotate
    grid: ceil_div(C, 128), R
    block: 64
    args: [x, position, frequency, out, C]
*/
// sample: kernel=rotate_pairs_r6xc128 status=passed level=full
// The remainder is within half a turn, where the precise float32 functions need no table.

extern "C" __global__ void rotate(const float* x, const int* position, const float* frequency,
                                  float* out, int C) {
  const int half = C / 2, i = blockIdx.x * 64 + threadIdx.x;
  if (i >= half) return;
  const double angle = static_cast<float>(position[blockIdx.y]) * frequency[i];
  const double turns = rint(angle * 0.15915494309189533577);
  const float rest = static_cast<float>(fma(turns, -6.283185307179586477, angle));
  const float sine = sinf(rest), cosine = cosf(rest);
  const size_t row = static_cast<size_t>(blockIdx.y) * C;
  const float first = x[row + i], second = x[row + half + i];
  out[row + i] = first * cosine - second * sine;
  out[row + half + i] = first * sine + second * cosine;
}
