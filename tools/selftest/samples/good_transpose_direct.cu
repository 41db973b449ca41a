/* kopt: 1
family: layout
note: "no shared memory: reads along rows, writes across"
where: "true"
launch:
  - kernel: transpose_direct
    grid: 8
    block: 128
    args: [x, out, B, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// Mapping: thread i owns the outputs i, i + 1,024, ...

template <class Index>
struct Matrix {
  const float* data;
  Index rows, columns;
  __device__ float operator()(Index r, Index c) const { return data[r * columns + c]; }
};

extern "C" __global__ void transpose_direct(const float* x, float* out, unsigned B, unsigned M,
                                            unsigned N) {
  const unsigned n = M * N;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < B * n; i += gridDim.x * blockDim.x) {
    const Matrix<unsigned> matrix{x + i / n * n, M, N};
    const unsigned at = i % n;
    out[i] = matrix(at % M, at / M);
  }
}
