"""States of reductions: what a thread keeps while it reads elements, and how two are merged.

Each is a struct of device code with `start`, `add` and `merge`. Merging is done in a fixed order,
so that a result does not depend on which block is done first.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fold:
    """A reduction of elements to one or several numbers."""

    state: str
    """Name of the struct in the namespace `op`, a template over the type of an element."""
    results: tuple[str, ...]
    """Code of each result, from `state`; {count} is the number of elements, {T} their type."""
    numbers: int = 1
    """How many values of type {T} a state is; 0 if it cannot be stored and read back."""
    needs_index: bool = False
    """Whether `add` takes an element's place, too."""


SUM = Fold("Sum", ("state.total",))
MEAN = Fold("Sum", ("state.total / {T}({count})",))
PRODUCT = Fold("Product", ("state.total",))
LARGEST = Fold("Largest", ("state.best",))
LARGEST_MAGNITUDE = Fold("LargestMagnitude", ("state.value()",))
"""Floats that are not negative are compared by their bits, in which NaN is above all."""
SMALLEST = Fold("Smallest", ("state.best",))
ANY = Fold("Any", ("state.found",), 0)
ALL = Fold("All", ("state.found",), 0)
FIRST_LARGEST = Fold("FirstLargest", ("state.best", "state.index"), 0, needs_index=True)
FIRST_SMALLEST = Fold("FirstSmallest", ("state.best", "state.index"), 0, needs_index=True)
EXPONENTIALS = Fold("Exponentials", ("state.largest", "state.total"), 2)


def moments(*results: str) -> Fold:
    """Return the fold to mean and sum of squared deviations, with results computed from them."""
    return Fold("Moments", results, 3)


_EXTREME = """\
template <class T>
struct {name} {{
  T best;
  static __device__ {name} start() {{ return {{{start}}}; }}
  __device__ void add(T x) {{
    if (x {sign} best || x != x) best = x;  // NaN stays
  }}
  __device__ void merge(const {name}& other) {{ add(other.best); }}
}};"""
_FIRST = """\
// Of equal elements the first; NaN counts as {word}.
template <class T>
struct {name} {{
  T best;
  long long index;
  static __device__ {name} start() {{ return {{T(0), -1}}; }}
  __device__ void add(T x, long long at) {{
    const bool is_nan = x != x, was_nan = best != best;
    const bool is_better = is_nan ? !was_nan : !was_nan && x {sign} best;
    const bool is_equal = is_nan ? was_nan : x == best;
    if (index < 0 || is_better || (is_equal && at < index)) {{
      best = x;
      index = at;
    }}
  }}
  __device__ void merge(const {name}& other) {{
    if (other.index >= 0) add(other.best, other.index);
  }}
}};"""
_FLAG = """\
template <class T>
struct {name} {{
  bool found;
  static __device__ {name} start() {{ return {{{start}}}; }}
  __device__ void add(T x) {{ found = found {sign} (x != T(0)); }}
  __device__ void merge(const {name}& other) {{ found = found {sign} other.found; }}
}};"""
_TOTAL = """\
template <class T>
struct {name} {{
  T total;
  static __device__ {name} start() {{ return {{T({start})}}; }}
  __device__ void add(T x) {{ total {sign}= x; }}
  __device__ void merge(const {name}& other) {{ total {sign}= other.total; }}
}};"""
_LOWEST = (
    "std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()"
    " : std::numeric_limits<T>::lowest()"
)
_HIGHEST = (
    "std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()"
    " : std::numeric_limits<T>::max()"
)

FOLD_FUNCTIONS = {
    "Sum": _TOTAL.format(name="Sum", start=0, sign="+"),
    "Product": _TOTAL.format(name="Product", start=1, sign="*"),
    "Largest": _EXTREME.format(name="Largest", sign=">", start=_LOWEST),
    "Smallest": _EXTREME.format(name="Smallest", sign="<", start=_HIGHEST),
    "FirstLargest": _FIRST.format(name="FirstLargest", sign=">", word="larger than any"),
    "FirstSmallest": _FIRST.format(name="FirstSmallest", sign="<", word="smaller than any"),
    "LargestMagnitude": """\
// The bits of floats that are not negative are in the order of their values; NaN is above all.
template <class T>
struct LargestMagnitude {
  unsigned bits;
  static __device__ LargestMagnitude start() { return {0u}; }
  __device__ void add(T x) { merge({__float_as_uint(x)}); }
  __device__ void merge(const LargestMagnitude& other) {
    bits = other.bits > bits ? other.bits : bits;
  }
  __device__ T value() const { return __uint_as_float(bits); }
};""",
    "Any": _FLAG.format(name="Any", start="false", sign="||"),
    "All": _FLAG.format(name="All", start="true", sign="&&"),
    "Moments": """\
// Mean and squared deviations of what was added, by Welford's recurrence; merged as by Chan.
template <class T>
struct Moments {
  T count, mean, squares;
  static __device__ Moments start() { return {T(0), T(0), T(0)}; }
  __device__ void add(T x) {
    count += T(1);
    const T before = x - mean;
    mean += before / count;
    squares += before * (x - mean);
  }
  __device__ void merge(const Moments& other) {
    const T sum = count + other.count;
    if (other.count == T(0)) return;
    const T apart = other.mean - mean;
    mean += apart * (other.count / sum);
    squares += other.squares + apart * apart * (count * (other.count / sum));
    count = sum;
  }
};""",
    "Exponentials": """\
// The largest element and the sum of exponentials relative to it.
template <class T>
struct Exponentials {
  T largest, total;
  static __device__ Exponentials start() { return {-std::numeric_limits<T>::infinity(), T(0)}; }
  __device__ void add(T x) { merge({x, T(1)}); }
  __device__ void merge(const Exponentials& other) {
    const T least = -std::numeric_limits<T>::infinity();
    const bool is_above = other.largest > largest || other.largest != other.largest;
    const T top = is_above ? other.largest : largest;
    const T ours = largest == least ? T(0) : total * std::exp(largest - top);
    const T theirs = other.largest == least ? T(0) : other.total * std::exp(other.largest - top);
    largest = top;
    total = ours + theirs;
  }
};""",
    "merged_in_block": """\
// All threads of the block call this; the first gets all their states, merged as a tree.
template <class State>
__device__ State merged_in_block(State state) {
  __shared__ State states[REDUCE];
  states[threadIdx.x] = state;
  __syncthreads();  // all states are in place before any is read
  for (int stride = REDUCE / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) states[threadIdx.x].merge(states[threadIdx.x + stride]);
    __syncthreads();  // the next step reads what other threads wrote in this one
  }
  return states[0];
}""",
}
"""Device code by name, for `device_functions`."""
