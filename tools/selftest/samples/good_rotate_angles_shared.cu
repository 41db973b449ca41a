/* kopt: 1
family: other
note: "sines and cosines once a row, in shared memory"
where: "C % 2 == 0 and C <= 512"
flags: {fast_math: false}
launch:
  - kernel: rotate
    grid: R
    block: 64
    args: [x, position, frequency, out, C]
*/
// sample: kernel=rotate_pairs_r6xc128 status=passed level=full
// One warp computes them, both use them.

extern "C" __global__ void rotate(const float* x, const int* position, const float* frequency,
                                  float* out, int C) {
  __shared__ float2 turns[256];
  const int half = C / 2;
  const float at = static_cast<float>(position[blockIdx.x]);
  if (threadIdx.x < 32)
    for (int i = threadIdx.x; i < half; i += 32)
      sincosf(at * frequency[i], &turns[i].y, &turns[i].x);
  __syncthreads();
  const size_t row = static_cast<size_t>(blockIdx.x) * C;
  for (int i = threadIdx.x; i < C; i += 64) {
    const int pair = i < half ? i : i - half;
    const float own = x[row + i], other = x[row + (i < half ? i + half : i - half)];
    out[row + i] = own * turns[pair].x + (i < half ? -other : other) * turns[pair].y;
  }
}
