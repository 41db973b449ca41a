"""The device functions that generated kernels call, in the namespace `op`: only what is used."""

import re

_USED = re.compile(r"\bop::(\w+)")

_FUNCTIONS = {
    "Wide": "using Wide = long long;",
    "IndexOf": """\
// Positions are 64-bit only where a tensor is so large; what rounding up adds fits beside it.
template <long long... counts>
using IndexOf = std::conditional_t<((counts > (1LL << 30)) || ...), long long, int>;""",
    "infinity": """\
template <class T>
__device__ T infinity() {
  return std::numeric_limits<T>::infinity();
}""",
    "nan": """\
template <class T>
__device__ T nan() {
  return std::numeric_limits<T>::quiet_NaN();
}""",
    "is_nan": """\
template <class T>
__device__ bool is_nan(T x) {
  return x != x;
}""",
    "is_inf": """\
template <class T>
__device__ bool is_inf(T x) {
  return x == infinity<T>() || x == -infinity<T>();  // uses op::infinity
}""",
    "rounded_bfloat16": """\
// The nearest bfloat16. The instruction that rounds one alone is slower than that for two.
__device__ float rounded_bfloat16(float x) {
  return __low2float(__floats2bfloat162_rn(x, 0.0f));
}""",
    "rounded_float16": """\
__device__ float rounded_float16(float x) {
  return __low2float(__floats2half2_rn(x, 0.0f));
}""",
    "relu": """\
template <class T>
__device__ T relu(T x) {
  return x < T(0) ? T(0) : x;  // NaN stays
}""",
    "sigmoid": """\
template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}""",
    "gelu": """\
template <class T>
__device__ T gelu(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
}""",
    "gelu_tanh": """\
template <class T>
__device__ T gelu_tanh(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}""",
    "elu": """\
template <class T>
__device__ T elu(T x, T alpha, T scale, T input_scale) {
  return x > T(0) ? scale * x : scale * alpha * std::expm1(input_scale * x);
}""",
    "softplus": """\
template <class T>
__device__ T softplus(T x, T beta, T threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}""",
    "leaky_relu": """\
template <class T>
__device__ T leaky_relu(T x, T slope) {
  return x > T(0) ? x : x * slope;
}""",
    "at_least": """\
template <class T>
__device__ T at_least(T x, T low) {
  return x < low ? low : x;  // NaN stays
}""",
    "at_most": """\
template <class T>
__device__ T at_most(T x, T high) {
  return x > high ? high : x;  // NaN stays
}""",
    "minimum": """\
template <class T>
__device__ T minimum(T x, T y) {
  return x != x || x < y ? x : y;  // NaN of either wins
}""",
    "maximum": """\
template <class T>
__device__ T maximum(T x, T y) {
  return x != x || x > y ? x : y;  // NaN of either wins
}""",
    "sign": """\
template <class T>
__device__ T sign(T x) {
  return T((x > T(0)) - (x < T(0)));
}""",
    "remainder": """\
// The remainder has the divisor's sign, as in Python.
template <class T>
__device__ T remainder(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    const T rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  } else {
    const T rest = std::fmod(x, y);
    return rest != T(0) && (rest < T(0)) != (y < T(0)) ? rest + y : rest;
  }
}""",
    "remainder_to_zero": """\
template <class T>
__device__ T remainder_to_zero(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return x % y;
  } else {
    return std::fmod(x, y);
  }
}""",
    "divide_down": """\
template <class T>
__device__ T divide_down(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    const T quotient = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
  } else {
    return std::floor(x / y);
  }
}""",
    "divide_to_zero": """\
template <class T>
__device__ T divide_to_zero(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return x / y;
  } else {
    return std::trunc(x / y);
  }
}""",
    "Bits": """\
// Integers wrap around; signed arithmetic that overflows is undefined.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;""",
    "add": """\
template <class T>
__device__ T add(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) + static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x + y;
  }
}""",
    "subtract": """\
template <class T>
__device__ T subtract(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) - static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x - y;
  }
}""",
    "multiply": """\
template <class T>
__device__ T multiply(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(x) * static_cast<Bits<T>>(y));  // op::Bits
  } else {
    return x * y;
  }
}""",
    "power": """\
template <class T>
__device__ T power(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y < 0) return x == 1 ? T(1) : x == T(-1) ? (y % 2 == 0 ? T(1) : T(-1)) : T(0);
    T result = 1;
    for (; y > 0; y /= 2) {
      if (y % 2 != 0) result = multiply(result, x);  // op::multiply
      x = multiply(x, x);
    }
    return result;
  } else {
    return std::pow(x, y);
  }
}""",
    "wrapped": """\
// An index from the end counts back from it.
template <class T>
__device__ T wrapped(T index, long long count) {
  return index < 0 ? static_cast<T>(index + count) : index;
}""",
}


def device_functions(text: str, more: dict[str, str]) -> str:
    """Return the functions that `text` calls and those that these call, in a namespace.

    Args:
        text: All kernels.
        more: Further functions by name, beside those of this module.
    """
    known = {**_FUNCTIONS, **more}
    wanted: set[str] = set()
    open_texts = [text]
    while open_texts:
        for name in _USED.findall(open_texts.pop()):
            if name not in wanted:
                wanted.add(name)
                open_texts.append(known[name])
    if not wanted:
        return ""
    body = "\n\n".join(text for name, text in known.items() if name in wanted)
    return f"namespace op {{\n\n{body}\n\n}}  // namespace op\n"
