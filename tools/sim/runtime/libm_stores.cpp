// libm's functions that store through a pointer. The linker sends the candidate's calls here
// (--wrap): no hook precedes a store that a library makes.
#include "../include/kopt_sim/runtime_interface.h"
#include "state.h"

#define CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

namespace {

template <class T>
void store(T* to, T value, std::uintptr_t pc) {
  kopt_sim::check_store(to, sizeof value, pc);
  *to = value;
}

}  // namespace

extern "C" {

#define ONE_RESULT(NAME, REAL, RESULT)           \
  REAL __real_##NAME(REAL, RESULT*);             \
  REAL __wrap_##NAME(REAL x, RESULT* result) {   \
    RESULT stored;                               \
    const REAL value = __real_##NAME(x, &stored); \
    store(result, stored, CALLER);               \
    return value;                                \
  }
ONE_RESULT(frexp, double, int)
ONE_RESULT(frexpf, float, int)
ONE_RESULT(modf, double, double)
ONE_RESULT(modff, float, float)

#define QUOTIENT(NAME, REAL)                             \
  REAL __real_##NAME(REAL, REAL, int*);                  \
  REAL __wrap_##NAME(REAL x, REAL y, int* quotient) {    \
    int stored;                                          \
    const REAL value = __real_##NAME(x, y, &stored);     \
    store(quotient, stored, CALLER);                     \
    return value;                                        \
  }
QUOTIENT(remquo, double)
QUOTIENT(remquof, float)

#define SINE_AND_COSINE(NAME, REAL)                         \
  void __real_##NAME(REAL, REAL*, REAL*);                   \
  void __wrap_##NAME(REAL x, REAL* sine, REAL* cosine) {    \
    REAL of_sine, of_cosine;                                \
    __real_##NAME(x, &of_sine, &of_cosine);                 \
    store(sine, of_sine, CALLER);                           \
    store(cosine, of_cosine, CALLER);                       \
  }
SINE_AND_COSINE(sincos, double)
SINE_AND_COSINE(sincosf, float)
}
