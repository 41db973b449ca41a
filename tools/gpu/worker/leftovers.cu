// What a candidate finds in memory that it has not written: a word of the caller's choice instead of
// zeros, or of what the launch before left.
//
// Mapping: leftover_shared takes all shared memory of an SM and most of its registers, so that one
// block runs on each SM; leftover_local fills every SM with threads, whose local memory lies where
// that of the next kernel's threads will lie.

constexpr int THREADS = 256;
constexpr int REGISTERS = 216;  // of 255 a thread; the rest is for addresses and the loops
constexpr int LOCAL_WORDS = 256;

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    leftover_shared(unsigned word, unsigned words) {
  extern __shared__ volatile unsigned shared[];
  for (unsigned i = threadIdx.x; i < words; i += THREADS) shared[i] = word;
  unsigned registers[REGISTERS];
#pragma unroll
  for (int i = 0; i < REGISTERS; ++i) registers[i] = shared[threadIdx.x];
  __syncthreads();
  // Only now is known what they are compared with, so that all of them have lived until here.
  const unsigned other = shared[(threadIdx.x + 1) % THREADS];
  unsigned equal = 0;
#pragma unroll
  for (int i = 0; i < REGISTERS; ++i) equal += registers[i] == other ? i : 0;
  if (equal == 1) shared[threadIdx.x] = equal;  // never: their sum is another one, or 0
}

extern "C" __global__ void __launch_bounds__(1024, 2) leftover_local(unsigned word, unsigned words) {
  volatile unsigned local[LOCAL_WORDS];
  for (unsigned i = 0; i < words; ++i) local[i % LOCAL_WORDS] = word;
}
