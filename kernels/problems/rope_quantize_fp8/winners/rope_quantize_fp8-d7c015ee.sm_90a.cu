/* kopt: 1
family: [pass_fusion, cache_policy, fast_math, divergence, launch_bounds]
note: "written by kopt run (tiles of BLOCK threads, each of which loads PACKS vectors before it computes), any number of tokens: dependent_launch, streaming_access, fast_reciprocal, roles_by_block, occupancy_bound"
tune: {BLOCK: [128, 256, 512], PACKS: [2, 4, 1, 8], TRIGGER: [1, 0], HINT: [1, 2], MIN_BLOCKS: [2, 4, 1]}
tune_where: ["BLOCK * MIN_BLOCKS <= 2048"]
where: "N > 16 and N <= 512"
specialize: [H]
flags: {fast_math: true}
launch:
  - {kernel: k1_tiles, grid: "ceil_div((N * H) * 32, BLOCK * ceil_div(PACKS, 4) * 8) + ceil_div(N * 32, BLOCK * ceil_div(PACKS, 4) * 8) + ceil_div((N * H) * 512, BLOCK * PACKS * 8) + ceil_div(N * 512, BLOCK * PACKS * 8)", block: BLOCK, pdl: true, args: [q_rope, pos_ids, cos_sin_cache, quant_scale_q, q_rope_out, k_rope, quant_scale_kv, k_rope_out, q_nope, q_nope_out, k_nope, k_nope_out, {int32: "ceil_div((N * H) * 32, BLOCK * ceil_div(PACKS, 4) * 8)"}, {int32: "ceil_div((N * H) * 32, BLOCK * ceil_div(PACKS, 4) * 8) + ceil_div(N * 32, BLOCK * ceil_div(PACKS, 4) * 8)"}, {int32: "ceil_div((N * H) * 32, BLOCK * ceil_div(PACKS, 4) * 8) + ceil_div(N * 32, BLOCK * ceil_div(PACKS, 4) * 8) + ceil_div((N * H) * 512, BLOCK * PACKS * 8)"}, N]}
*/

#include <cmath>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <initializer_list>
#include <kopt/global_access.cuh>
#include <kopt/griddepcontrol.cuh>
#include <limits>
#include <type_traits>

namespace op {

using Wide = long long;

// Positions are 64-bit only where a tensor is so large; what rounding up adds fits beside it.
template <long long... counts>
using IndexOf = std::conditional_t<((counts > (1LL << 30)) || ...), long long, int>;

// Integers wrap around; signed arithmetic that overflows is undefined.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

template <class T>
__device__ T add(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) + static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x + y;
  }
}

template <class T>
__device__ T subtract(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) - static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x - y;
  }
}

template <class T>
__device__ T multiply(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) * static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x * y;
  }
}

// An index from the end counts back from it.
template <class T>
__device__ T wrapped(T index, long long count) {
  return index < 0 ? static_cast<T>(index + count) : index;
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
}

}  // namespace op

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) k1_tiles(const __nv_bfloat16* __restrict__ q_rope_data, const int* __restrict__ pos_ids_data, const float* __restrict__ cos_sin_cache_data, float quant_scale_q_value, __nv_fp8_storage_t* __restrict__ q_rope_out_data, const __nv_bfloat16* __restrict__ k_rope_data, float quant_scale_kv_value, __nv_fp8_storage_t* __restrict__ k_rope_out_data, const __nv_bfloat16* __restrict__ q_nope_data, __nv_fp8_storage_t* __restrict__ q_nope_out_data, const __nv_bfloat16* __restrict__ k_nope_data, __nv_fp8_storage_t* __restrict__ k_nope_out_data, int end1, int end2, int end3, int tokens) {
  using Index = int;  // 512 tokens of 128 heads and 512 elements are fewer than 2^31
  if (int(blockIdx.x) < end1) {
    // q_rope_out
    const int tile = blockIdx.x;
    constexpr int VEC = op::pack_length(8, {(Index(KOPT_H) * 32), 32, 64});
    constexpr int ITEMS = (PACKS + 3) / 4 * 8 / VEC;
    constexpr bool KEEPS = ITEMS * VEC * 12 <= 256;
    op::Pack<__nv_bfloat16, VEC> q_rope_pack_kept[KEEPS ? ITEMS : 1];
    op::Pack<float, VEC> cos_sin_cache_pack_kept[KEEPS ? ITEMS : 1];
    op::Pack<__nv_bfloat16, VEC> q_rope_pack2_kept[KEEPS ? ITEMS : 1];
    op::Pack<float, VEC> cos_sin_cache_pack2_kept[KEEPS ? ITEMS : 1];
    if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
    kopt::griddepcontrol_wait();
    if constexpr (KEEPS) {
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
        if (first < tokens * KOPT_H * 32) {
          const Index j2 = first / 32 % KOPT_H;
          const Index j3 = first / (Index(KOPT_H) * 32);
          const int v5 = pos_ids_data[j3];
          const long long v6 = static_cast<long long>(v5);
          const Index j7 = static_cast<Index>(op::wrapped(v6, tokens));
          q_rope_pack_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(q_rope_data + (j3 * KOPT_H + j2) * 64 + (first % 32));
          cos_sin_cache_pack_kept[KEEPS ? i : 0] = op::read_pack<VEC>(cos_sin_cache_data + j7 * 64 + (first % 32));
          q_rope_pack2_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(q_rope_data + (j3 * KOPT_H + j2) * 64 + 32 + (first % 32));
          cos_sin_cache_pack2_kept[KEEPS ? i : 0] = op::read_pack<VEC>(cos_sin_cache_data + j7 * 64 + 32 + (first % 32));
        }
      }
    }
    if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
      if (first < tokens * KOPT_H * 32) {
        const Index j2 = first / 32 % KOPT_H;
        const Index j3 = first / (Index(KOPT_H) * 32);
        const int v5 = pos_ids_data[j3];
        const long long v6 = static_cast<long long>(v5);
        const Index j7 = static_cast<Index>(op::wrapped(v6, tokens));
        const auto q_rope_pack = KEEPS ? q_rope_pack_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(q_rope_data + (j3 * KOPT_H + j2) * 64 + (first % 32));
        const auto cos_sin_cache_pack = KEEPS ? cos_sin_cache_pack_kept[KEEPS ? i : 0] : op::read_pack<VEC>(cos_sin_cache_data + j7 * 64 + (first % 32));
        const auto q_rope_pack2 = KEEPS ? q_rope_pack2_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(q_rope_data + (j3 * KOPT_H + j2) * 64 + 32 + (first % 32));
        const auto cos_sin_cache_pack2 = KEEPS ? cos_sin_cache_pack2_kept[KEEPS ? i : 0] : op::read_pack<VEC>(cos_sin_cache_data + j7 * 64 + 32 + (first % 32));
        op::Pack<float, VEC> made1;
        op::Pack<float, VEC> made2;
        #pragma unroll
        for (int v = 0; v < VEC; ++v) {
          const float v4 = op::widened(q_rope_pack, v);
          const float v8 = cos_sin_cache_pack.at[v];
          const float v9 = op::multiply(v4, v8);
          const float v11 = op::widened(q_rope_pack2, v);
          const float v12 = cos_sin_cache_pack2.at[v];
          const float v13 = op::multiply(v11, v12);
          const float v14 = op::subtract(v9, v13);
          const float v15 = op::multiply(v14, quant_scale_q_value);
          made1.at[v] = v15;
          const float v16 = op::multiply(v11, v8);
          const float v17 = op::multiply(v4, v12);
          const float v18 = op::add(v16, v17);
          const float v19 = op::multiply(v18, quant_scale_q_value);
          made2.at[v] = v19;
        }
        op::write_streaming(q_rope_out_data + (j3 * KOPT_H + j2) * 64 + (first % 32), op::to_float8_e4m3fn(made1));
        op::write_streaming(q_rope_out_data + (j3 * KOPT_H + j2) * 64 + 32 + (first % 32), op::to_float8_e4m3fn(made2));
      }
    }
  }
  else if (int(blockIdx.x) < end2) {
    // k_rope_out
    const int tile = blockIdx.x - end1;
    constexpr int VEC = op::pack_length(8, {32, 64});
    constexpr int ITEMS = (PACKS + 3) / 4 * 8 / VEC;
    constexpr bool KEEPS = ITEMS * VEC * 12 <= 256;
    op::Pack<__nv_bfloat16, VEC> k_rope_pack_kept[KEEPS ? ITEMS : 1];
    op::Pack<float, VEC> cos_sin_cache_pack_kept[KEEPS ? ITEMS : 1];
    op::Pack<__nv_bfloat16, VEC> k_rope_pack2_kept[KEEPS ? ITEMS : 1];
    op::Pack<float, VEC> cos_sin_cache_pack2_kept[KEEPS ? ITEMS : 1];
    if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
    kopt::griddepcontrol_wait();
    if constexpr (KEEPS) {
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
        if (first < tokens * 32) {
          const Index j2 = first / 32;
          const int v4 = pos_ids_data[j2];
          const long long v5 = static_cast<long long>(v4);
          const Index j6 = static_cast<Index>(op::wrapped(v5, tokens));
          k_rope_pack_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(k_rope_data + j2 * 64 + (first % 32));
          cos_sin_cache_pack_kept[KEEPS ? i : 0] = op::read_pack<VEC>(cos_sin_cache_data + j6 * 64 + (first % 32));
          k_rope_pack2_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(k_rope_data + j2 * 64 + 32 + (first % 32));
          cos_sin_cache_pack2_kept[KEEPS ? i : 0] = op::read_pack<VEC>(cos_sin_cache_data + j6 * 64 + 32 + (first % 32));
        }
      }
    }
    if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
      if (first < tokens * 32) {
        const Index j2 = first / 32;
        const int v4 = pos_ids_data[j2];
        const long long v5 = static_cast<long long>(v4);
        const Index j6 = static_cast<Index>(op::wrapped(v5, tokens));
        const auto k_rope_pack = KEEPS ? k_rope_pack_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(k_rope_data + j2 * 64 + (first % 32));
        const auto cos_sin_cache_pack = KEEPS ? cos_sin_cache_pack_kept[KEEPS ? i : 0] : op::read_pack<VEC>(cos_sin_cache_data + j6 * 64 + (first % 32));
        const auto k_rope_pack2 = KEEPS ? k_rope_pack2_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(k_rope_data + j2 * 64 + 32 + (first % 32));
        const auto cos_sin_cache_pack2 = KEEPS ? cos_sin_cache_pack2_kept[KEEPS ? i : 0] : op::read_pack<VEC>(cos_sin_cache_data + j6 * 64 + 32 + (first % 32));
        op::Pack<float, VEC> made1;
        op::Pack<float, VEC> made2;
        #pragma unroll
        for (int v = 0; v < VEC; ++v) {
          const float v3 = op::widened(k_rope_pack, v);
          const float v7 = cos_sin_cache_pack.at[v];
          const float v8 = op::multiply(v3, v7);
          const float v10 = op::widened(k_rope_pack2, v);
          const float v11 = cos_sin_cache_pack2.at[v];
          const float v12 = op::multiply(v10, v11);
          const float v13 = op::subtract(v8, v12);
          const float v14 = op::multiply(v13, quant_scale_kv_value);
          made1.at[v] = v14;
          const float v15 = op::multiply(v10, v7);
          const float v16 = op::multiply(v3, v11);
          const float v17 = op::add(v15, v16);
          const float v18 = op::multiply(v17, quant_scale_kv_value);
          made2.at[v] = v18;
        }
        op::write_streaming(k_rope_out_data + j2 * 64 + (first % 32), op::to_float8_e4m3fn(made1));
        op::write_streaming(k_rope_out_data + j2 * 64 + 32 + (first % 32), op::to_float8_e4m3fn(made2));
      }
    }
  }
  else if (int(blockIdx.x) < end3) {
    // q_nope_out
    const int tile = blockIdx.x - end2;
    constexpr int VEC = op::pack_length(8, {(Index(KOPT_H) * 512), 512});
    constexpr int ITEMS = PACKS * 8 / VEC;
    constexpr bool KEEPS = ITEMS * VEC * 2 <= 256;
    op::Pack<__nv_bfloat16, VEC> q_nope_pack_kept[KEEPS ? ITEMS : 1];
    if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
    kopt::griddepcontrol_wait();
    if constexpr (KEEPS) {
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
        if (first < tokens * KOPT_H * 512) {
          q_nope_pack_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(q_nope_data + first);
        }
      }
    }
    if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
      if (first < tokens * KOPT_H * 512) {
        const auto q_nope_pack = KEEPS ? q_nope_pack_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(q_nope_data + first);
        op::Pack<float, VEC> made1;
        #pragma unroll
        for (int v = 0; v < VEC; ++v) {
          const float v4 = op::widened(q_nope_pack, v);
          const float v5 = op::multiply(v4, quant_scale_q_value);
          made1.at[v] = v5;
        }
        op::write_streaming(q_nope_out_data + first, op::to_float8_e4m3fn(made1));
      }
    }
  }
  else {
    // k_nope_out
    const int tile = blockIdx.x - end3;
    constexpr int VEC = op::pack_length(8, {512});
    constexpr int ITEMS = PACKS * 8 / VEC;
    constexpr bool KEEPS = ITEMS * VEC * 2 <= 256;
    op::Pack<__nv_bfloat16, VEC> k_nope_pack_kept[KEEPS ? ITEMS : 1];
    if (TRIGGER == 0) kopt::griddepcontrol_launch_dependents();
    kopt::griddepcontrol_wait();
    if constexpr (KEEPS) {
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
        if (first < tokens * 512) {
          k_nope_pack_kept[KEEPS ? i : 0] = op::read_streaming<VEC>(k_nope_data + first);
        }
      }
    }
    if (TRIGGER == 1) kopt::griddepcontrol_launch_dependents();
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int first = ((tile * ITEMS + i) * BLOCK + threadIdx.x) * VEC;
      if (first < tokens * 512) {
        const auto k_nope_pack = KEEPS ? k_nope_pack_kept[KEEPS ? i : 0] : op::read_streaming<VEC>(k_nope_data + first);
        op::Pack<float, VEC> made1;
        #pragma unroll
        for (int v = 0; v < VEC; ++v) {
          const float v3 = op::widened(k_nope_pack, v);
          const float v4 = op::multiply(v3, quant_scale_kv_value);
          made1.at[v] = v4;
        }
        op::write_streaming(k_nope_out_data + first, op::to_float8_e4m3fn(made1));
      }
    }
  }
}
