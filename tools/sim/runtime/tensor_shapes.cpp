// Descriptors of tcgen05: of an instruction, and of a matrix in shared memory. Source: the PTX ISA,
// sections 9.7.16.4 and 9.7.16.2.1.
#include <cstdio>

#include "element_values.h"
#include "race_detector.h"
#include "shared_space.h"
#include "tensor_product.h"

namespace kopt_sim {

namespace {

constexpr std::uint64_t kMatrixFixed = 0x1fe1'c000'c000'c000, kMatrixVersion = 0x0000'4000'0000'0000;
constexpr std::uint32_t kInstructionReserved = 0xe080'0040;  // those of .ws, too
constexpr Element kNone = Element::kF64;

struct KindOfProduct {
  unsigned depth;
  Element factors[6], sums[3];  // by their numbers in the descriptor
};

const KindOfProduct& kind_of(TensorKind kind) {
  constexpr Element kF32 = Element::kF32, kF16 = Element::kF16;
  static constexpr KindOfProduct kKinds[] = {
      {16, {kF16, Element::kBf16, kNone, kNone, kNone, kNone}, {kF16, kF32, kNone}},
      {8, {kNone, kNone, Element::kTf32, kNone, kNone, kNone}, {kNone, kF32, kNone}},
      {32,
       {Element::kE4m3, Element::kE5m2, kNone, Element::kE2m3, Element::kE3m2, Element::kE2m1},
       {kF16, kF32, kNone}},
      {32,
       {Element::kU8, Element::kS8, kNone, kNone, kNone, kNone},
       {kNone, kNone, Element::kS32}},
  };
  return kKinds[static_cast<unsigned>(kind)];
}

[[noreturn]] void stop_at_instruction(Fault kind, std::uint32_t descriptor, std::uintptr_t pc,
                                      const char* note) {
  FaultRecord record = describe_fault(kind, pc);
  std::snprintf(record.note, sizeof record.note, "the instruction descriptor 0x%08x of tcgen05.mma %s",
                descriptor, note);
  stop_with(record);
}

bool has_columns(const TensorProduct& product, unsigned columns) {
  if (columns == 0 || columns > 256) return false;
  return columns % (product.kind == TensorKind::kI8 && columns > 32 ? 16 : 8) == 0;
}

void require_valid(const TensorProduct& product, const TensorShapes& shapes, std::uintptr_t pc) {
  const std::uint32_t descriptor = product.instruction;
  const auto stop = [&](const char* note) {
    stop_at_instruction(Fault::crash, descriptor, pc, note);
  };
  if ((descriptor & kInstructionReserved) != 0) stop("has bits that must be 0 (6, 23, 29, 30-31)");
  if (shapes.a == kNone || shapes.b == kNone || shapes.d == kNone)
    stop("has types that its kind does not have (bits 4-5, 7-9, 10-12)");
  if (shapes.d == Element::kF16 && (shapes.a == Element::kBf16 || shapes.b == Element::kBf16))
    stop("has sums of f16 for factors of bf16");
  if (shapes.rows != 64 && shapes.rows != 128) stop("has no M of 64 or 128 (bits 24-28: M / 16)");
  if (!has_columns(product, shapes.columns))
    stop("has no N of 8 to 256 in steps of 8, of integers above 32 of 16 (bits 17-22: N / 8)");
  if (product.kind == TensorKind::kI8 ? shapes.negates_a || shapes.negates_b : shapes.saturates)
    stop("negates integers, or saturates floats (bits 3, 13, 14)");
  const auto turns = [](Element element, bool transposed) {
    return transposed && bits_of(element) < 8;
  };
  if (turns(shapes.a, shapes.transposes_a) || turns(shapes.b, shapes.transposes_b))
    stop("transposes elements of 4 or 6 bits (bits 15, 16)");
  if (shapes.transposes_b && bits_of(shapes.b) == 8 && shapes.columns % 16 != 0)
    stop("transposes B of bytes with an N that is no multiple of 16");
}

}  // namespace

TensorShapes shapes_of(const TensorProduct& product, std::uintptr_t pc) {
  if (product.scales != 0) return scaled_shapes_of(product, pc);
  const std::uint32_t given = product.instruction;
  const KindOfProduct& kind = kind_of(product.kind);
  const auto factor = [&](unsigned first) {
    const unsigned number = given >> first & 7u;
    return number < 6 ? kind.factors[number] : kNone;
  };
  const unsigned sums = given >> 4 & 3u;
  const auto has = [given](unsigned bit) { return (given >> bit & 1u) != 0; };
  if (has(2))
    stop_at_instruction(Fault::unsupported, given, pc, "is of a sparse matrix (bit 2)");
  const TensorShapes shapes{(given >> 24 & 31u) * 16, (given >> 17 & 63u) * 8, kind.depth,
                            factor(7), factor(10), sums < 3 ? kind.sums[sums] : kNone,
                            has(13), has(14), has(15), has(16), has(3)};
  require_valid(product, shapes, pc);
  if (product.kind == TensorKind::kTf32 && (shapes.transposes_a || shapes.transposes_b))
    stop_at_instruction(Fault::unsupported, given, pc, "transposes tf32 (bits 15, 16)");
  if (product.kind == TensorKind::kF16 && shapes.a != shapes.b)
    stop_at_instruction(Fault::unsupported, given, pc, "has one factor of f16 and one of bf16");
  if (!product.a_is_shared && bits_of(shapes.a) < 8)
    stop_at_instruction(Fault::unsupported, given, pc, "has A of 4 or 6 bits in tensor memory");
  return shapes;
}

SharedMatrix tensor_matrix(std::uint64_t descriptor, std::uintptr_t pc) {
  constexpr unsigned kSwizzles[] = {16, 0, 128, 0, 64, 0, 32, 0};
  const auto mode = static_cast<unsigned>(descriptor >> 61);
  FaultRecord record = describe_fault(Fault::crash, pc);
  const auto shown = static_cast<unsigned long long>(descriptor);
  if (mode == 1 || (descriptor >> 52 & 1u) != 0) {
    record.kind = Fault::unsupported;
    std::snprintf(record.note, sizeof record.note,
                  "the matrix descriptor 0x%016llx has a swizzle of 32 bytes at once, or an absolute "
                  "address for its leading offset (bits 52, 61-63)", shown);
    stop_with(record);
  }
  if ((descriptor & kMatrixFixed) != kMatrixVersion || kSwizzles[mode] == 0) {
    std::snprintf(record.note, sizeof record.note,
                  "the matrix descriptor 0x%016llx must have 0b001 in bits 46-48, 0 in 14-15, 30-31 "
                  "and 53-60, and 0, 2, 4 or 6 in 61-63 (128, 64 or 32 bytes)", shown);
    stop_with(record);
  }
  return {from_shared_space(descriptor_field(descriptor, 0)), descriptor_field(descriptor, 16),
          descriptor_field(descriptor, 32), kSwizzles[mode],
          static_cast<unsigned>(descriptor >> 49 & 7u)};
}

}  // namespace kopt_sim
