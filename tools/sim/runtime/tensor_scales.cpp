// Products whose factors have scales in tensor memory, one for each block of them along k. Source: the
// PTX ISA, sections 9.7.16.4.2 (instruction descriptor) and 9.7.16.10.7 (block scaling).
#include <cmath>
#include <cstdio>

#include "element_values.h"
#include "state.h"
#include "tensor_product.h"

namespace kopt_sim {

namespace {

constexpr std::uint32_t kScaledReserved = 0x8700'0048;  // a K of 96, too
constexpr unsigned kQuarterLanes = 32, kQuarters = 4;

[[noreturn]] void stop_scaling(Fault kind, std::uint32_t descriptor, std::uintptr_t pc,
                               const char* note) {
  FaultRecord record = describe_fault(kind, pc);
  std::snprintf(record.note, sizeof record.note,
                "the instruction descriptor 0x%08x of tcgen05.mma with scales %s", descriptor, note);
  stop_with(record);
}

Element scaled_element(TensorKind kind, unsigned number) {
  if (kind != TensorKind::kMxf8f6f4) return number == 1 ? Element::kE2m1 : Element::kF64;
  constexpr Element kAll[] = {Element::kE4m3, Element::kE5m2, Element::kF64, Element::kE2m3,
                              Element::kE3m2, Element::kE2m1, Element::kF64, Element::kF64};
  return kAll[number];
}

// The numbers of a row's scales: bytes of the word from the given one on.
void require_scales(const TensorProduct& product, const TensorScales& scales, std::uintptr_t pc) {
  const auto stop = [&](const char* note) {
    stop_scaling(Fault::crash, product.instruction, pc, note);
  };
  for (const unsigned first : {scales.first_a, scales.first_b})
    if (first % scales.count != 0)
      stop("has a scale that begins within another one's bytes (bits 4-5, 29-30: 0 or 2 for two, 0 "
           "for four)");
  if (!scales.are_powers && (product.kind != TensorKind::kMxf4nvf4 || scales.count != 4))
    stop("has scales of ue4m3, which only mxf4nvf4 with four of them has (bit 23: 1 is ue8m0)");
}

double scale_value(std::uint32_t bits, bool is_power) {
  if (!is_power) return e4m3_value(bits & 0x7fu);
  return bits == 0xffu ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

}  // namespace

TensorScales scales_of(const TensorProduct& product, std::uintptr_t pc) {
  const std::uint32_t given = product.instruction;
  const TensorScales scales{product.scales, given >> 29 & 3u, given >> 4 & 3u,
                            (given >> 23 & 1u) != 0};
  require_scales(product, scales, pc);
  return scales;
}

TensorShapes scaled_shapes_of(const TensorProduct& product, std::uintptr_t pc) {
  const std::uint32_t given = product.instruction;
  const auto has = [given](unsigned bit) { return (given >> bit & 1u) != 0; };
  if (has(2)) stop_scaling(Fault::unsupported, given, pc, "is of a sparse matrix (bit 2)");
  const TensorShapes shapes{(given >> 27 & 3u) * 128, (given >> 17 & 63u) * 8,
                            product.kind == TensorKind::kMxf8f6f4 ? 32u : 64u,
                            scaled_element(product.kind, given >> 7 & 7u),
                            scaled_element(product.kind, given >> 10 & 7u),
                            Element::kF32, has(13), has(14), has(15), has(16), false,
                            product.kind != TensorKind::kMxf8f6f4};
  const auto stop = [&](const char* note) { stop_scaling(Fault::crash, given, pc, note); };
  if ((given & kScaledReserved) != 0 || (given & 3u) != 0)
    stop("has bits that must be 0 (0-1, 3, 6, 24-26, 31)");
  if (shapes.a == Element::kF64 || shapes.b == Element::kF64)
    stop("has types that its kind does not have (bits 7-9, 10-12)");
  if (shapes.rows != 128) stop("has no M of 128 (bits 27-28: M / 128)");
  if (shapes.columns == 0 || shapes.columns > 256) stop("has no N of 8 to 256 (bits 17-22: N / 8)");
  if ((shapes.transposes_a && bits_of(shapes.a) < 8) || (shapes.transposes_b && bits_of(shapes.b) < 8))
    stop("transposes elements of 4 or 6 bits (bits 15, 16)");
  if (shapes.transposes_b && shapes.columns % 16 != 0)
    stop("transposes B with an N that is no multiple of 16");
  if (!product.a_is_shared && bits_of(shapes.a) < 8 && !shapes.packs)
    stop_scaling(Fault::unsupported, given, pc, "has A of 4 or 6 bits in tensor memory");
  return shapes;
}

// Row or column n has its scales in lane n % 32 of each quarter, n / 32 columns behind the first.
void add_scale_regions(std::uint32_t address, unsigned lines, std::vector<TensorRegion>& regions) {
  for (unsigned quarter = 0; quarter < kQuarters; ++quarter) {
    const unsigned lane = quarter * kQuarterLanes, column = address & 0xffffu;
    if (lines >= kQuarterLanes)
      regions.push_back({lane, kQuarterLanes, column, lines / kQuarterLanes});
    if (lines % kQuarterLanes != 0)
      regions.push_back({lane, lines % kQuarterLanes, column + lines / kQuarterLanes, 1});
  }
}

double scale_at(const ScalePlace& place, const TensorScales& scales) {
  const unsigned lane = place.quarter * kQuarterLanes + place.line % kQuarterLanes;
  const std::uint32_t column = (place.address & 0xffffu) + place.line / kQuarterLanes;
  const std::uint32_t word = cell_at(*g.block, lane, column).word;
  return scale_value(word >> 8 * place.byte & 0xffu, scales.are_powers);
}

}  // namespace kopt_sim
