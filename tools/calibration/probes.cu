/* kopt: 1
family: other
note: "clocks of one thing each, by dependent chains: every step needs the one before"
launch:
  - {kernel: chase_memory, grid: 1, block: 32, args: [links, clocks, {int32: 0}, {int32: FAR}, {int32: LINES}, {int32: 0}]}
  - {kernel: chase_memory, grid: 1, block: 32, args: [links, clocks, {int32: 1}, {int32: NEAR}, {int32: LINES}, {int32: 1}]}
  - {kernel: chase_l1, grid: 1, block: 32, args: [links, clocks, {int32: 2}]}
  - {kernel: chase_shared, grid: 1, block: 32, args: [clocks, {int32: 3}]}
  - {kernel: shuffles, grid: 1, block: 32, args: [clocks, {int32: 4}]}
  - {kernel: barriers, grid: 1, block: 256, args: [clocks, {int32: 5}]}
*/
// links[i] is the index of the line that follows the one which begins at i. A chain is walked by
// one thread; what it ends at is stored, so that no load may be left out.

constexpr int kSteps = 256;
constexpr int kL1Lines = 32;  // of 128 bytes: 4 KiB
constexpr int kInts = 32;     // of a line

__device__ void keep(float* clocks, int slot, long long taken, int steps, int end) {
  clocks[slot] = static_cast<float>(taken) / steps + (end == -1 ? 1.0f : 0.0f);
}

// Loads that only L2 and DRAM answer. With `warm` the chain is walked once before.
extern "C" __global__ void chase_memory(const int* links, float* clocks, int slot, int first,
                                        int lines, int warm) {
  if (threadIdx.x != 0) return;
  int at = first;
  for (int step = 0; step < warm * lines; ++step) at = __ldcg(links + at);
  const long long begun = clock64();
  for (int step = 0; step < lines; ++step) at = __ldcg(links + at);
  keep(clocks, slot, clock64() - begun, lines, at);
}

// The first lines of links are a ring of their own.
extern "C" __global__ void chase_l1(const int* links, float* clocks, int slot) {
  if (threadIdx.x != 0) return;
  int at = 0;
  for (int step = 0; step < kL1Lines; ++step) at = __ldca(links + at);
  const long long begun = clock64();
  for (int step = 0; step < kSteps; ++step) at = __ldca(links + at);
  keep(clocks, slot, clock64() - begun, kSteps, at);
}

extern "C" __global__ void chase_shared(float* clocks, int slot) {
  __shared__ int ring[kInts];
  ring[threadIdx.x] = (threadIdx.x + 1) % kInts;
  __syncthreads();
  if (threadIdx.x != 0) return;
  volatile int* links = ring;
  int at = 0;
  const long long begun = clock64();
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) at = links[at];
  keep(clocks, slot, clock64() - begun, kSteps, at);
}

extern "C" __global__ void shuffles(float* clocks, int slot) {
  int lane = threadIdx.x;
  const long long begun = clock64();
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) {
    lane = __shfl_sync(0xffffffffu, lane, lane);  // each from the lane that the last one named
  }
  const long long taken = clock64() - begun;
  if (threadIdx.x == 0) keep(clocks, slot, taken, kSteps, lane);
}

extern "C" __global__ void barriers(float* clocks, int slot) {
  __syncthreads();
  const long long begun = clock64();
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) __syncthreads();
  const long long taken = clock64() - begun;
  if (threadIdx.x == 0) keep(clocks, slot, taken, kSteps, 0);
}
