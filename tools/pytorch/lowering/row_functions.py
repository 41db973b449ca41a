"""Device code of kernels that make rows: packs of neighbours, and states merged in a row."""

ROW_FUNCTIONS = {
    "pack_length": """\
// The longest pack, of a power of two up to `most`, that every one of `counts` is a multiple of.
constexpr int pack_length(int most, std::initializer_list<long long> counts) {
  int length = most;
  for (const long long count : counts) {
    while (count % length != 0) length /= 2;
  }
  return length;
}""",
    "Pack": """\
// Neighbours in memory that are read or written at once.
template <class T, int length>
struct alignas(sizeof(T) * length < 16 ? sizeof(T) * length : 16) Pack {
  T at[length];
};""",
    "read_pack": """\
template <int length, class T>
__device__ Pack<T, length> read_pack(const T* place) {
  return *reinterpret_cast<const Pack<T, length>*>(place);  // op::Pack
}""",
    "write_pack": """\
template <class T, int length>
__device__ void write_pack(T* place, const Pack<T, length>& made) {
  *reinterpret_cast<Pack<T, length>*>(place) = made;  // op::Pack
}""",
    "from_lane": """\
// The state of the lane that is `distance` further on in the warp.
template <class State>
__device__ State from_lane(const State& state, int distance) {
  constexpr int words = (sizeof(State) + 3) / 4;
  unsigned bits[words] = {};
  memcpy(bits, &state, sizeof(State));
  for (int word = 0; word < words; ++word) {
    bits[word] = __shfl_down_sync(0xffffffffu, bits[word], distance);
  }
  State other;
  memcpy(&other, bits, sizeof(State));
  return other;
}""",
    "merged_in_row": """\
// All threads of a row call this and get their states merged, always in the same order.
template <class State>
__device__ State merged_in_row(State state) {
  for (int distance = 16; distance > 0; distance /= 2) {
    state.merge(from_lane(state, distance));  // op::from_lane; the first lane gets all
  }
  __shared__ State states[ROW * ROWS / 32];
  __syncthreads();  // no thread still reads the states of a reduction before this one
  if (threadIdx.x % 32 == 0) states[threadIdx.x / 32] = state;
  __syncthreads();  // all states are in place before any is read
  const int begin = threadIdx.x / ROW * (ROW / 32);
  State merged = states[begin];
  for (int warp = 1; warp < ROW / 32; ++warp) merged.merge(states[begin + warp]);
  return merged;
}""",
}
"""Device code by name, for `device_functions`."""
