"""Stand-ins for the headers of the host that NVRTC lacks.

They declare what kernels take of them, with glibc's types for x86_64 and libstdc++'s values, so
that a kernel means the same under nvcc. They are not whole: what they lack is an error of NVRTC,
and the source goes to nvcc. Empty ones are of what NVRTC has built in.
"""

from pathlib import Path

from kopt.config.settings import Settings

from .include_tree import content_folder, digest_of

_INTEGERS = """#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t;
}
"""
_BUILT_IN = "#pragma once\n"
# glibc's values, of the same types. nvcc includes <math.h> in front of every source: so is this.
_MATH = """#pragma once
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#define NAN (__builtin_bit_cast(float, 0x7fc00000))
#define HUGE_VALF INFINITY
#define HUGE_VAL (__builtin_bit_cast(double, 0x7ff0000000000000))
#define M_PI 3.14159265358979323846
"""
# What kernels take of the driver's header, which NVRTC cannot read: it declares host functions.
# Source: CUtensorMap in <cuda.h> of CUDA 12 and 13.
_TENSOR_MAP = """#pragma once
#include "cstdint"
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct CUtensorMap_st {
  alignas(__CUDACC_VER_MAJOR__ < 13 ? 64 : 128) cuuint64_t opaque[16];
} CUtensorMap;
"""

# NVRTC has the overloads for float and double, at global scope. Of two operands of different types
# libstdc++ computes in double and NVRTC not always: these go to nvcc, as what it lacks.
_OF_EQUAL_TYPES = ("pow", "copysign")
_FUNCTIONS = (
    *("abs", "fabs", "sqrt", "cbrt", "hypot", "exp", "exp2", "expm1", "log", "log2"),
    *("log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"),
    *("tanh", "asinh", "acosh", "atanh", "erf", "erfc", "tgamma", "lgamma", "ceil", "floor"),
    *("trunc", "round", "rint", "nearbyint", "fmod", "remainder", "fma", "fmin", "fmax"),
    *("fdim", "isnan", "isinf", "isfinite", "signbit", "ldexp", "frexp"),
)
_IN_STD = "\n".join(
    [
        '#pragma once\n#include "math.h"\nnamespace std {',
        *(f"using ::{name};" for name in _FUNCTIONS),
        *(
            f"__device__ inline {one} {name}({one} x, {one} y) {{ return ::{name}(x, y); }}"
            for name in _OF_EQUAL_TYPES
            for one in ("float", "double")
        ),
        *(
            f"template <typename X, typename Y> double {name}(X, Y) = delete;"
            for name in _OF_EQUAL_TYPES
        ),
        "}\n",
    ]
)
# The templates themselves are left undefined: libstdc++ answers T() for a type of a library.
_LIMITS = """#pragma once
#include "math.h"
namespace std {
template <typename T> struct numeric_limits;
#define KOPT_LIMITS(T, least, most)                   \\
  template <> struct numeric_limits<T> {              \\
    static constexpr bool is_integer = true;          \\
    static constexpr bool is_signed = static_cast<T>(-1) < 0;\\
    __device__ static constexpr T min() { return least; }        \\
    __device__ static constexpr T lowest() { return least; }     \\
    __device__ static constexpr T max() { return most; }         \\
  };
#define KOPT_SIGNED(T, most) KOPT_LIMITS(T, static_cast<T>(-most - 1), most)
KOPT_LIMITS(bool, false, true)
KOPT_SIGNED(char, 127)
KOPT_SIGNED(signed char, 127)
KOPT_SIGNED(short, 32767)
KOPT_SIGNED(int, 2147483647)
KOPT_SIGNED(long, 9223372036854775807l)
KOPT_SIGNED(long long, 9223372036854775807ll)
KOPT_LIMITS(unsigned char, 0, 255)
KOPT_LIMITS(unsigned short, 0, 65535)
KOPT_LIMITS(unsigned, 0, 4294967295u)
KOPT_LIMITS(unsigned long, 0, 18446744073709551615ul)
KOPT_LIMITS(unsigned long long, 0, 18446744073709551615ull)
#undef KOPT_SIGNED
#undef KOPT_LIMITS
template <> struct numeric_limits<float> {
  static constexpr bool is_integer = false, is_signed = true;
  __device__ static constexpr float min() { return 1.17549435082228750797e-38f; }
  __device__ static constexpr float max() { return 3.40282346638528859812e+38f; }
  __device__ static constexpr float lowest() { return -max(); }
  __device__ static constexpr float epsilon() { return 1.1920928955078125e-07f; }
  __device__ static constexpr float infinity() { return INFINITY; }
  __device__ static constexpr float quiet_NaN() { return NAN; }
};
template <> struct numeric_limits<double> {
  static constexpr bool is_integer = false, is_signed = true;
  __device__ static constexpr double min() { return 2.22507385850720138309e-308; }
  __device__ static constexpr double max() { return 1.79769313486231570815e+308; }
  __device__ static constexpr double lowest() { return -max(); }
  __device__ static constexpr double epsilon() { return 2.22044604925031308085e-16; }
  __device__ static constexpr double infinity() { return HUGE_VAL; }
  __device__ static constexpr double quiet_NaN() {
    return __builtin_bit_cast(double, 0x7ff8000000000000);
  }
};
}
"""
_TYPE_TRAITS = """#pragma once
namespace std {
template <typename T, T v> struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  __device__ constexpr operator T() const { return v; }
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;
template <typename T> struct remove_const { using type = T; };
template <typename T> struct remove_const<const T> { using type = T; };
template <typename T> struct remove_volatile { using type = T; };
template <typename T> struct remove_volatile<volatile T> { using type = T; };
template <typename T>
using remove_cv_t = typename remove_const<typename remove_volatile<T>::type>::type;
template <typename T> struct remove_reference { using type = T; };
template <typename T> struct remove_reference<T&> { using type = T; };
template <typename T> struct remove_reference<T&&> { using type = T; };
template <typename T> using remove_reference_t = typename remove_reference<T>::type;
template <typename A, typename B> inline constexpr bool is_same_v = false;
template <typename A> inline constexpr bool is_same_v<A, A> = true;
template <typename A, typename B> struct is_same : integral_constant<bool, is_same_v<A, B>> {};
template <typename T, typename... Of> inline constexpr bool kopt_is_one = (is_same_v<T, Of> || ...);
template <typename T>
inline constexpr bool is_integral_v =
    kopt_is_one<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, char8_t, char16_t,
                char32_t, short, unsigned short, int, unsigned, long, unsigned long, long long,
                unsigned long long>;
template <typename T> struct is_integral : integral_constant<bool, is_integral_v<T>> {};
template <typename T>
inline constexpr bool is_floating_point_v = kopt_is_one<remove_cv_t<T>, float, double>;
template <typename T>
struct is_floating_point : integral_constant<bool, is_floating_point_v<T>> {};
template <bool, typename A, typename B> struct conditional { using type = A; };
template <typename A, typename B> struct conditional<false, A, B> { using type = B; };
template <bool b, typename A, typename B>
using conditional_t = typename conditional<b, A, B>::type;
template <bool, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { using type = T; };
template <bool b, typename T = void> using enable_if_t = typename enable_if<b, T>::type;
}
"""

_HEADERS = {
    "cmath": _IN_STD,
    "cstddef": _BUILT_IN,
    "cstdint": _INTEGERS,
    "cstring": _BUILT_IN,
    "cuda.h": _TENSOR_MAP,
    "initializer_list": _BUILT_IN,
    "limits": _LIMITS,
    "math.h": _MATH,
    "stddef.h": _BUILT_IN,
    "stdint.h": '#include "cstdint"\n',
    "type_traits": _TYPE_TRAITS,
}


def host_header_root(settings: Settings) -> Path:
    """Return the folder for NVRTC's -I that holds the stand-ins, made on first use."""
    headers = {name: text.encode() for name, text in _HEADERS.items()}
    return content_folder(settings, digest_of(headers), headers)
