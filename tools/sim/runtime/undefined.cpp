// What -fsanitize=object-size and -fsanitize=signed-integer-overflow find in the candidate's code.
#include <cstdio>

#include "race_detector.h"

using namespace kopt_sim;

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

namespace {

[[noreturn]] void stop_at_overflow(const char* what, std::uintptr_t pc) {
  FaultRecord record = describe_fault(Fault::crash, pc);
  std::snprintf(record.note, sizeof record.note,
                "signed integer overflow in %s: undefined, nvcc may compile it as if it could not be",
                what);
  stop_with(record);
}

// As g++ lays out what it tells the handler.
struct Mismatch {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  std::uint8_t log_alignment, is_store;
};

constexpr std::uintptr_t kNear = 16 << 20;

}  // namespace

extern "C" {

// Beyond an object whose size g++ knows. No hook sees an access that begins in a local array or a
// constant table; beyond shared variables one does, and says more.
void __ubsan_handle_type_mismatch_v1(const Mismatch* found, std::uintptr_t address) {
  const bool near_stack = address - (g.stack_begin - kNear) < 2 * kNear;
  const bool constant = address - g.constant_begin < g.constant_end - g.constant_begin;
  if ((!near_stack && !constant) || is_candidate_memory(address)) return;
  Access access{address, CALLER, nullptr, 0, 0, 0, found->is_store == 1};
  stop_out_of_bounds(access, near_stack ? "beyond a local array of the thread"
                                        : "beyond a constant table");
}

#define SIGNED_OVERFLOW(NAME, WHAT) \
  void __ubsan_handle_##NAME##_overflow() { stop_at_overflow(WHAT, CALLER); }
SIGNED_OVERFLOW(add, "an addition")
SIGNED_OVERFLOW(sub, "a subtraction")
SIGNED_OVERFLOW(mul, "a product")
SIGNED_OVERFLOW(negate, "a change of sign")
SIGNED_OVERFLOW(divrem, "a division")
}
