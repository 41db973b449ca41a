/* kopt: 1
family: other
note: "an element a thread"
launch:
  - kernel: transpose
    grid: ceil_div(B * M * N, 256)
    block: 256
    args: [x, out, B, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// Reads in order, writes apart.

extern "C" __global__ void transpose(const float* x, float* out, int B, int M, int N) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= B * M * N) return;
  const int matrix = i / (M * N), row = i / N % M, column = i % N;
  out[(static_cast<size_t>(matrix) * N + column) * M + row] = x[i];
}
