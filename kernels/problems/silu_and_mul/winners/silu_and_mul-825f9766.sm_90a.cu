/* kopt: 1
family: [grid_shape, pass_fusion, cache_policy, fast_math, launch_bounds]
note: "generated: one kernel, in which ROW threads make each row; split_rows, dependent_launch, streaming_access, fast_reciprocal, occupancy_bound"
tune: {ROW: [128, 64, 256, 32, 512], ROWS: [1], SPLIT: [14, 28, 7, 56, 4], TRIGGER: [1, 0], HINT: [1, 2], MIN_BLOCKS: [4, 2, 1]}
tune_where: ["ROW * ROWS <= 1024", "(SPLIT - 1) * ROW < 1792", "ROW * ROWS * MIN_BLOCKS <= 2048"]
specialize: [H, H2]
flags: {fast_math: true}
where: "B > 16 and B <= 512"
launch:
  - {kernel: k1_rows, grid: "ceil_div(B, ROWS) * SPLIT", block: ROW * ROWS, pdl: true, args: [input, out, B]}
*/

#include <cmath>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <initializer_list>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>
#include <limits>
#include <type_traits>

namespace op {

using Wide = long long;

template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// Integers wrap around; signed arithmetic that overflows is undefined.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

template <class T>
__device__ T multiply(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) * static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x * y;
  }
}

// The longest pack, of a power of two up to `most`, that every one of `counts` is a multiple of.
constexpr int pack_length(int most, std::initializer_list<long long> counts) {
  int length = most;
  for (const long long count : counts) {
    while (count % length != 0) length /= 2;
  }
  return length;
}

// Neighbours in memory that are read or written at once.
template <class T, int length>
struct alignas(sizeof(T) * length < 16 ? sizeof(T) * length : 16) Pack {
  T at[length];
};

template <int length, class T>
__device__ Pack<T, length> read_pack(const T* place) {
  return *reinterpret_cast<const Pack<T, length>*>(place);  // op::Pack
}

template <class T, class Made>
__device__ void write_pack(T* place, const Made& made) {
  *reinterpret_cast<Made*>(place) = made;
}

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
}

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
}

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
}

// Rounded two at a time, where there are two.
template <int length>
__device__ Pack<__nv_bfloat16, length> to_bfloat16(const Pack<float, length>& made) {  // op::Pack
  Pack<__nv_bfloat16, length> rounded;
  #pragma unroll
  for (int v = 0; v < length; v += 2) {
    const float low = made.at[v];
    if constexpr (length % 2 != 0) {
      rounded.at[v] = __float2bfloat16(low);
    } else {
      const float high = made.at[v + 1];
      const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
      memcpy(&rounded.at[v], &pair, sizeof(pair));
    }
  }
  return rounded;
}

}  // namespace op

extern "C" __global__ void __launch_bounds__(ROW * ROWS, MIN_BLOCKS) k1_rows(const __nv_bfloat16* __restrict__ input_data, __nv_bfloat16* __restrict__ out_data, int rows) {
  using Index = op::Wide;
  const int lane = threadIdx.x % ROW;
  const int rank = blockIdx.x % SPLIT;  // which part of the row is this block's
  const int place = blockIdx.x / SPLIT * ROWS + threadIdx.x / ROW;
  const bool is_row = ROWS == 1 || place < rows;
  const Index row = is_row ? place : rows - 1;
  constexpr int VEC = op::pack_length(8, {KOPT_H, KOPT_H2});
  constexpr int ITEMS = (KOPT_H + SPLIT * ROW * VEC - 1) / (SPLIT * ROW * VEC);
  constexpr bool EXACT = KOPT_H == ITEMS * SPLIT * ROW * VEC;  // all threads have as many packs
  constexpr bool KEEPS = ITEMS * VEC * 4 <= 256;
  op::Pack<__nv_bfloat16, VEC> input_pack_kept[KEEPS ? ITEMS : 1];
  op::Pack<__nv_bfloat16, VEC> input_pack2_kept[KEEPS ? ITEMS : 1];
  if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
  kopt::griddepcontrol_wait();
  if constexpr (KEEPS) {
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int first = ((i * SPLIT + rank) * ROW + lane) * VEC;
      if (EXACT || first < KOPT_H) {
        input_pack_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(input_data + row * KOPT_H2 + first);
        input_pack2_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(input_data + row * KOPT_H2 + KOPT_H + first);
      }
    }
  }
  if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int first = ((i * SPLIT + rank) * ROW + lane) * VEC;
    if (EXACT || first < KOPT_H) {
      const auto input_pack = KEEPS ? input_pack_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(input_data + row * KOPT_H2 + first);
      const auto input_pack2 = KEEPS ? input_pack2_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(input_data + row * KOPT_H2 + KOPT_H + first);
      op::Pack<float, VEC> out_made;
      #pragma unroll
      for (int v = 0; v < VEC; ++v) {
        const float v1 = op::widened(input_pack, v);
        const float v2 = op::sigmoid(v1);
        const float v3 = op::multiply(v1, v2);
        const float v5 = op::widened(input_pack2, v);
        const float v6 = op::multiply(v3, v5);
        out_made.at[v] = v6;
      }
      if (is_row) op::write_streaming(out_data + row * KOPT_H + first, op::to_bfloat16(out_made));
    }
  }
}
