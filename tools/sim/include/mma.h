// nvcuda::wmma over the runtime's mma: a fragment is one or two of mma.sync's, so that a product is
// one or two of them. CUDA leaves open where the elements of a fragment lie.
#pragma once

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

__device__ inline float __float_to_tf32(float x) {
  return kopt_sim::ptx_as<float>(kopt_sim::ptx_tf32(x));
}

}  // namespace wmma
}  // namespace nvcuda

namespace kopt_sim {

namespace wmma = nvcuda::wmma;

template <class T>
struct Stored {
  using type = T;
  static constexpr Element element = std::is_same_v<T, __half>          ? Element::kF16
                                     : std::is_same_v<T, __nv_bfloat16> ? Element::kBf16
                                     : std::is_same_v<T, double>        ? Element::kF64
                                     : std::is_same_v<T, signed char>   ? Element::kS8
                                     : std::is_same_v<T, unsigned char> ? Element::kU8
                                     : std::is_same_v<T, int>           ? Element::kS32
                                                                        : Element::kF32;
};
template <>
struct Stored<wmma::precision::tf32> {
  using type = float;
  static constexpr Element element = Element::kTf32;
};

// Where the elements of a fragment lie: D = A * B of m16n8k*, or m8n8k4 of doubles. In the shape
// 8x32 the factors change places: the product is computed as that of the transposed ones.
template <class Use, int m, int n, int k, class T>
struct WmmaShape {
  using Storage = typename Stored<T>::type;
  static constexpr bool kSum = std::is_same_v<Use, wmma::accumulator>;
  static constexpr bool kFirst = std::is_same_v<Use, wmma::matrix_a>;
  static constexpr bool kSwapped = m == 8 && n == 32;
  static constexpr bool kTall = kFirst != kSwapped;  // of tiles with 16 rows; others have 8 columns
  static constexpr int kRows = kFirst || kSum ? m : k, kColumns = kFirst ? k : n;
  static constexpr int kEach = kRows * kColumns / 32;
  // Of halves CUDA keeps each element twice.
  static constexpr int kCount = !kSum && std::is_same_v<T, __half> ? 16 : kEach;
  static constexpr int kOfTile = n == 8 && m == 8 ? kEach : kSum ? 4 : kTall ? k / 2 : k / 4;

  // Offset in memory of element `i` of the calling lane.
  __device__ static std::size_t offset(int i, unsigned ldm, bool by_rows) {
    const int lane = static_cast<int>(kopt_sim_lane()), g = lane / 4, t = lane % 4;
    const int tile = i / kOfTile, e = i % kOfTile;
    int row = 0, column = 0;
    if constexpr (kSum) {
      row = g + e / 2 * 8, column = t * 2 + e % 2;
      if constexpr (m == 16) column += tile * 8;
      else row += tile * 16;
      if constexpr (kSwapped) {
        const int other = row;
        row = column, column = other;
      }
    } else {
      constexpr int kPer = sizeof(Storage) >= 4 ? 1 : 4 / static_cast<int>(sizeof(Storage));
      const int r = e / kPer, j = e % kPer;
      const int line = kTall ? g + r % 2 * 8 + tile * 16 : g + tile * 8;
      const int depth = ((kTall ? r / 2 : r) * 4 + t) * kPer + j;
      row = kFirst ? line : depth, column = kFirst ? depth : line;
    }
    return by_rows ? std::size_t{ldm} * static_cast<unsigned>(row) + static_cast<unsigned>(column)
                   : std::size_t{ldm} * static_cast<unsigned>(column) + static_cast<unsigned>(row);
  }
};

// The registers of tile `number` of a fragment; a fragment of one tile has the same for both.
template <class Shape, class Storage>
__forceinline__ unsigned __int128 wmma_registers(const Storage* x, int number) {
  constexpr int kBytes = Shape::kOfTile * static_cast<int>(sizeof(Storage));
  unsigned __int128 joined = 0;
  const Storage* from = x + (Shape::kOfTile == Shape::kEach ? 0 : number * Shape::kOfTile);
  __builtin_memcpy(&joined, from, kBytes);
  return joined;
}

// A pointer must be a multiple of 32 bytes, the distance of rows of 16 (CUDA C++ guide).
template <class T>
__forceinline__ void require_wmma_aligned(const T* p, unsigned ldm, bool is_store) {
  kopt_sim_require_aligned(p, 32, is_store);
  kopt_sim_require_aligned(p + ldm, 16, is_store);
}

}  // namespace kopt_sim

namespace nvcuda {
namespace wmma {

template <class Use, int m, int n, int k, class T, class Layout = void>
class __align__(8) fragment {
 public:
  using Shape = kopt_sim::WmmaShape<Use, m, n, k, T>;
  using element_type = T;
  using storage_element_type = typename Shape::Storage;
  enum { num_elements = Shape::kCount, num_storage_elements = Shape::kCount };
  storage_element_type x[num_elements];
};

template <class Use, int m, int n, int k, class T, class Layout>
__device__ inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& f,
                                     const typename kopt_sim::Stored<T>::type& value) {
  for (auto& one : f.x) one = value;
}

template <class Fragment, class T>
__device__ inline void kopt_sim_load(Fragment& f, const T* p, unsigned ldm, bool by_rows,
                                     int line) {
  using Shape = typename Fragment::Shape;
  kopt_sim_meet_warp(line);
  kopt_sim::require_wmma_aligned(p, ldm, false);
  for (int i = 0; i < Shape::kCount; ++i)
    f.x[i] = i < Shape::kEach ? p[Shape::offset(i, ldm, by_rows)] : f.x[i % Shape::kEach];
}

template <class Use, int m, int n, int k, class T, class Layout>
__device__ inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f,
                                        const typename kopt_sim::Stored<T>::type* p, unsigned ldm,
                                        KOPT_SIM_LINE) {
  kopt_sim_load(f, p, ldm, std::is_same_v<Layout, row_major>, line);
}
template <int m, int n, int k, class T>
__device__ inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& f,
                                        const typename kopt_sim::Stored<T>::type* p, unsigned ldm,
                                        layout_t layout, KOPT_SIM_LINE) {
  kopt_sim_load(f, p, ldm, layout == mem_row_major, line);
}
template <int m, int n, int k, class T>
__device__ inline void store_matrix_sync(typename kopt_sim::Stored<T>::type* p,
                                         const fragment<accumulator, m, n, k, T>& f, unsigned ldm,
                                         layout_t layout, KOPT_SIM_LINE) {
  using Shape = typename fragment<accumulator, m, n, k, T>::Shape;
  kopt_sim_meet_warp(line);
  kopt_sim::require_wmma_aligned(p, ldm, true);
  for (int i = 0; i < Shape::kEach; ++i)
    p[Shape::offset(i, ldm, layout == mem_row_major)] = f.x[i];
}

template <int m, int n, int k, class A, class ALayout, class B, class BLayout, class C, class D>
__device__ inline void mma_sync(fragment<accumulator, m, n, k, D>& d,
                                const fragment<matrix_a, m, n, k, A, ALayout>& a,
                                const fragment<matrix_b, m, n, k, B, BLayout>& b,
                                const fragment<accumulator, m, n, k, C>& c, bool saturates = false,
                                KOPT_SIM_LINE) {
  using kopt_sim::Stored;
  using First = kopt_sim::WmmaShape<matrix_a, m, n, k, A>;
  using Second = kopt_sim::WmmaShape<matrix_b, m, n, k, B>;
  using Sum = std::conditional_t<std::is_same_v<C, D>, C, float>;
  using Sums = kopt_sim::WmmaShape<accumulator, m, n, k, Sum>;
  const unsigned code = kopt_sim::mma_code(k, Stored<A>::element, Stored<B>::element,
                                           Stored<Sum>::element, saturates);
  for (int tile = 0; tile < Sums::kEach / Sums::kOfTile; ++tile) {
    Sum sums[Sums::kOfTile];
    for (int i = 0; i < Sums::kOfTile; ++i)
      sums[i] = static_cast<Sum>(c.x[tile * Sums::kOfTile + i]);
    const auto first = kopt_sim::wmma_registers<First>(a.x, tile);
    const auto second = kopt_sim::wmma_registers<Second>(b.x, tile);
    unsigned __int128 joined = 0;
    __builtin_memcpy(&joined, sums, sizeof sums);
    joined = First::kSwapped ? kopt_sim_mma(code, line, second, first, joined)
                             : kopt_sim_mma(code, line, first, second, joined);
    __builtin_memcpy(sums, &joined, sizeof sums);
    for (int i = 0; i < Sums::kOfTile; ++i)
      d.x[tile * Sums::kOfTile + i] = static_cast<D>(sums[i]);
  }
}

}  // namespace wmma
}  // namespace nvcuda
