/* kopt: 1
family: other
note: "clocks of what blocks of a cluster do together"
launch:
  - {kernel: cluster_barriers, grid: 2, block: 128, cluster: 2, args: [clocks, {int32: 6}]}
  - {kernel: chase_cluster, grid: 2, block: 32, cluster: 2, args: [clocks, {int32: 7}]}
*/
// Block 0 measures; block 1 has what it reads and stays until it has.
#include <cooperative_groups.h>

namespace groups = cooperative_groups;
constexpr int kSteps = 256;
constexpr int kInts = 32;

extern "C" __global__ void cluster_barriers(float* clocks, int slot) {
  const auto cluster = groups::this_cluster();
  cluster.sync();
  const long long begun = clock64();
  for (int step = 0; step < kSteps; ++step) cluster.sync();
  const long long taken = clock64() - begun;
  if (blockIdx.x == 0 && threadIdx.x == 0) clocks[slot] = static_cast<float>(taken) / kSteps;
}

extern "C" __global__ void chase_cluster(float* clocks, int slot) {
  const auto cluster = groups::this_cluster();
  __shared__ int ring[kInts];
  ring[threadIdx.x] = (threadIdx.x + 1) % kInts;
  cluster.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    volatile int* links = cluster.map_shared_rank(ring, 1);
    int at = 0;
    const long long begun = clock64();
#pragma unroll 8
    for (int step = 0; step < kSteps; ++step) at = links[at];
    const long long taken = clock64() - begun;
    clocks[slot] = static_cast<float>(taken) / kSteps + (at == -1 ? 1.0f : 0.0f);
  }
  cluster.sync();
}
