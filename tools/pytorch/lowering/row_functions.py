"""Device code of kernels that make rows: packs of neighbours, and states merged in a row."""

_ROUNDED = {
    "bfloat16": (
        "__nv_bfloat16",
        "__float2bfloat16(low)",
        "__nv_bfloat162",
        "__floats2bfloat162_rn(low, high)",
    ),
    "float16": ("__half", "__float2half(low)", "__half2", "__floats2half2_rn(low, high)"),
}
"""By dtype: its C++ type, the rounding of one value, the type of two and their rounding."""
_ROUNDING = """\
// Rounded two at a time, where there are two.
template <int length>
__device__ Pack<{stored}, length> to_{dtype}(const Pack<float, length>& made) {{  // op::Pack
  Pack<{stored}, length> rounded;
  #pragma unroll
  for (int v = 0; v < length; v += 2) {{
    const float low = made.at[v];
    if constexpr (length % 2 != 0) {{
      rounded.at[v] = {one};
    }} else {{
      const float high = made.at[v + 1];
      const {kind} pair = {two};
      memcpy(&rounded.at[v], &pair, sizeof(pair));
    }}
  }}
  return rounded;
}}"""

ROW_FUNCTIONS = {
    "pack_length": """\
// The longest pack, of a power of two up to `most`, that every one of `counts` is a multiple of.
__device__ constexpr int pack_length(int most, std::initializer_list<long long> counts) {
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
template <class T, class Made>
__device__ void write_pack(T* place, const Made& made) {
  *reinterpret_cast<Made*>(place) = made;
}""",
    "from_lane": """\
// The state of the lane whose number differs in the bit `distance`.
template <class State>
__device__ State from_lane(const State& state, int distance, unsigned mask = 0xffffffffu) {
  constexpr int words = (sizeof(State) + 3) / 4;
  unsigned bits[words] = {};
  memcpy(bits, &state, sizeof(State));
  for (int word = 0; word < words; ++word) {
    bits[word] = __shfl_xor_sync(mask, bits[word], distance);
  }
  State other;
  memcpy(&other, bits, sizeof(State));
  return other;
}""",
    "shared_in_warp": """\
// All lanes of a warp call this and get their states merged.
template <class State>
__device__ State shared_in_warp(State state, int lanes = 32) {  // of 32 at most
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    state.merge(from_lane(state, distance));  // op::from_lane
  }
  return state;
}""",
    "merged_in_group": """\
// The `lanes` neighbours that have a group call this and get their states merged.
template <int lanes, bool is_whole_warp, class State>
__device__ State merged_in_group(State state) {
  static_assert(lanes >= 1 && lanes <= 32, "a group is a part of a warp");
  const unsigned own = (0xffffffffu >> (32 - lanes)) << (threadIdx.x % 32 / lanes * lanes);
  const unsigned mask = is_whole_warp ? 0xffffffffu : own;
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    state.merge(from_lane(state, distance, mask));  // op::from_lane
  }
  return state;
}""",
    "power_above": """\
// The smallest power of two that is not below `count`.
__device__ constexpr int power_above(int count) {
  int power = 1;
  while (power < count) power *= 2;
  return power;
}""",
    "merged_parts": """\
// Merges the states of all warps of a row, which are in shared memory: each lane reads a few, and
// the lanes merge theirs.
template <int parts, class State>
__device__ State merged_parts(const State* states) {
  constexpr int own = parts < 4 ? parts : parts > 128 ? (parts + 31) / 32 : 4;  // of 32 lanes
  constexpr int lanes = power_above(parts / own + (parts % own != 0));  // op::power_above
  const int first = threadIdx.x % lanes * own;
  State merged = State::start();
  #pragma unroll
  for (int part = 0; part < own; ++part) {
    const int checked = parts % own == 0 ? first : first + part;  // of `own` all exist, or none
    if (parts == lanes * own || checked < parts) merged.merge(states[first + part]);
  }
  return shared_in_warp(merged, lanes);  // op::shared_in_warp
}""",
    "Nothing": """\
// What is done while partial results are under way.
struct Nothing {
  __device__ void operator()() const {}
};""",
    "merged_in_row": """\
// All threads of a row call this and get their states merged, always in the same order.
template <int number, class State, class Meanwhile = Nothing>  // op::Nothing
__device__ State merged_in_row(State state, Meanwhile meanwhile = {}) {
  state = shared_in_warp(state);  // op::shared_in_warp
  if constexpr (ROW > 32) {
    alignas(16) __shared__ State states[ROW * ROWS / 32];  // of this reduction alone
    if (threadIdx.x % 32 == 0) states[threadIdx.x / 32] = state;
    meanwhile();
    __syncthreads();  // all states are in place before any is read
    state = merged_parts<ROW / 32>(states + threadIdx.x / ROW * (ROW / 32));  // op::merged_parts
  } else {
    meanwhile();
  }
  return state;
}""",
    "Words": """\
// A state whose size is a multiple of 4 bytes, so that it can be sent in words.
template <class State>
struct alignas(sizeof(State) % 4 != 0 ? 4 : alignof(State)) Words : State {
  static __device__ Words start() { return {State::start()}; }
};""",
    "merged_in_cluster": """\
// All threads of the cluster that makes a row call this and get their states merged. Each warp
// sends its state to every block; the mbarrier counts what comes.
template <int number, class State, class Meanwhile = Nothing>  // op::Nothing
__device__ State merged_in_cluster(State state, kopt::mbarrier_t* arrived,
                                   Meanwhile meanwhile = {}) {
  using Sent = Words<State>;  // op::Words
  constexpr int words = sizeof(Sent) / 4, parts = SPLIT * ROW / 32;
  state = shared_in_warp(state);  // op::shared_in_warp
  alignas(16) __shared__ float states[parts * words];  // of this reduction alone
  float own[words] = {};
  memcpy(own, &state, sizeof(State));
  const int warp = kopt::cluster_rank() * (ROW / 32) + threadIdx.x / 32;
  if (threadIdx.x % 32 < SPLIT) {
    for (int word = 0; word < words; ++word) {
      kopt::st_async(&states[warp * words + word], own[word], arrived, threadIdx.x % 32);
    }
  }
  meanwhile();
  kopt::mbarrier_wait_parity_cluster(arrived, 0);
  return merged_parts<parts>(reinterpret_cast<const Sent*>(states));  // op::merged_parts
}""",
    "read_streaming": """\
// As read_pack, for what this kernel reads once.
template <int length, class T>
__device__ Pack<T, length> read_streaming(const T* place) {
  if constexpr (HINT < 2 || sizeof(Pack<T, length>) != 16) {
    return read_pack<length>(place);  // op::read_pack
  } else {
    const uint4 words = kopt::load_streaming_16(place);
    Pack<T, length> pack;
    memcpy(&pack, &words, sizeof(words));
    return pack;
  }
}""",
    "write_streaming": """\
// As write_pack, for what no kernel reads soon.
template <class T, class Made>
__device__ void write_streaming(T* place, const Made& made) {
  if constexpr (HINT < 1 || (sizeof(Made) != 16 && sizeof(Made) != 8)) {
    write_pack(place, made);  // op::write_pack
  } else if constexpr (sizeof(Made) == 8) {
    // Conversions give two fp8 in 16 bits, and may merge two of them.
    using Words = std::conditional_t<sizeof(made.at[0]) == 2, ushort4, uint2>;
    Words words;
    memcpy(&words, &made, sizeof(words));
    __stcs(reinterpret_cast<Words*>(place), words);
  } else {
    uint4 words;
    memcpy(&words, &made, sizeof(words));
    kopt::store_streaming_16(place, words);
  }
}""",
    "packed_e2m1": """\
// The e2m1 codes of neighbours, two a byte: the even element in the low nibble.
template <int length>
__device__ Pack<unsigned char, length / 2> packed_e2m1(const Pack<float, length>& made) {
  Pack<unsigned char, length / 2> codes;  // op::Pack
  if constexpr (length == 8) {
    const unsigned word = kopt::floats_to_e2m1x8(made.at);
    memcpy(&codes, &word, sizeof(word));
  } else {
    #pragma unroll
    for (int v = 0; v < length; v += 2) {
      codes.at[v / 2] = kopt::float2_to_e2m1x2(make_float2(made.at[v], made.at[v + 1]));
    }
  }
  return codes;
}""",
    "widened": """\
// Element `v` as a float: a bfloat16 is the upper half of one.
template <int length>
__device__ float widened(const Pack<__nv_bfloat16, length>& pack, int v) {  // op::Pack
  if constexpr (length % 2 != 0) {
    return __bfloat162float(pack.at[v]);
  } else {
    unsigned pair;
    memcpy(&pair, &pack.at[v / 2 * 2], sizeof(pair));
    return __uint_as_float(v % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  }
}""",
    "to_float8_e4m3fn": """\
// Rounded two at a time, where there are two, and kept in pairs: a conversion may merge two pairs.
template <int length>
__device__ auto to_float8_e4m3fn(const Pack<float, length>& made) {  // op::Pack
  if constexpr (length % 2 != 0) {
    Pack<__nv_fp8_storage_t, length> rounded;
    #pragma unroll
    for (int v = 0; v < length; ++v) {
      rounded.at[v] = __nv_cvt_float_to_fp8(made.at[v], __NV_SATFINITE, __NV_E4M3);
    }
    return rounded;
  } else {
    Pack<__nv_fp8x2_storage_t, length / 2> pairs;
    #pragma unroll
    for (int v = 0; v < length; v += 2) {
      const float2 pair = make_float2(made.at[v], made.at[v + 1]);
      pairs.at[v / 2] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
    }
    return pairs;
  }
}""",
    **{
        f"to_{dtype}": _ROUNDING.format(dtype=dtype, stored=stored, one=one, two=two, kind=kind)
        for dtype, (stored, one, kind, two) in _ROUNDED.items()
    },
}
"""Device code by name, for `device_functions`."""
