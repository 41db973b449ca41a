/* kopt: 1
family: other
note: "4 by 4 values in registers"
where: "M % 4 == 0 and N % 4 == 0"
launch:
  - kernel: transpose
    grid: ceil_div(M * N, 1024), B
    block: 64
    args: [x, out, M, N]
*/
// sample: kernel=transpose_tiles_b2xm64xn96 status=passed level=full
// Four vector loads, four vector stores; rows and columns of multiples of four.

extern "C" __global__ void transpose(const float* x, float* out, int M, int N) {
  const int block = blockIdx.x * 64 + threadIdx.x, across = N / 4;
  if (block >= across * (M / 4)) return;
  const int row = block / across * 4, column = block % across * 4;
  const size_t matrix = static_cast<size_t>(blockIdx.y) * M * N;
  float4 lines[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    lines[k] = *reinterpret_cast<const float4*>(x + matrix + static_cast<size_t>(row + k) * N +
                                                column);
  float* to = out + matrix + static_cast<size_t>(column) * M + row;
  *reinterpret_cast<float4*>(to) = {lines[0].x, lines[1].x, lines[2].x, lines[3].x};
  *reinterpret_cast<float4*>(to + M) = {lines[0].y, lines[1].y, lines[2].y, lines[3].y};
  *reinterpret_cast<float4*>(to + 2 * M) = {lines[0].z, lines[1].z, lines[2].z, lines[3].z};
  *reinterpret_cast<float4*>(to + 3 * M) = {lines[0].w, lines[1].w, lines[2].w, lines[3].w};
}
