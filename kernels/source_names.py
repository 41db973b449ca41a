"""Which names, headers and directives a candidate may use: the closed lists of the source screen.

The rule behind them: the code that is checked is the code that ships. So nothing may tell one
compiler, device or moment from another, and nothing may read a file of the host.
"""

import re
from functools import lru_cache
from importlib.resources import files


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STANDARD_HEADERS = _words(
    "algorithm array bit cassert cfloat cinttypes climits cmath compare concepts cstddef cstdint"
    " cstdio cstdlib cstring functional initializer_list iterator limits numbers numeric new"
    " optional ratio span string_view tuple type_traits utility variant"
    " assert.h float.h inttypes.h limits.h math.h stdbool.h stddef.h stdint.h stdio.h"
    " stdlib.h string.h"
)

CUDA_HEADERS = _words(
    "cuda.h cuda_runtime.h cuda_runtime_api.h cuda_device_runtime_api.h cuda_bf16.h cuda_bf16.hpp"
    " cuda_fp16.h cuda_fp16.hpp cuda_fp8.h cuda_fp8.hpp cuda_fp6.h cuda_fp6.hpp cuda_fp4.h"
    " cuda_fp4.hpp cuda_pipeline.h cuda_pipeline_primitives.h cuda_awbarrier.h"
    " cuda_awbarrier_primitives.h cooperative_groups.h math_constants.h math_functions.h mma.h"
    " vector_types.h vector_functions.h device_functions.h device_types.h device_atomic_functions.h"
    " sm_20_atomic_functions.h sm_20_intrinsics.h sm_30_intrinsics.h sm_32_intrinsics.h"
    " sm_35_intrinsics.h sm_60_atomic_functions.h sm_61_intrinsics.h"
)

CUDA_FOLDERS = re.compile(
    r"(?:cooperative_groups|cuda(?:/std)?|cub(?:/[a-z]+)?)/[a-z0-9_]+(?:\.h|\.cuh|\.hpp)?"
)
"""Headers below a folder of CUDA's include tree: cooperative_groups/reduce.h, cuda/ptx, cub/..."""

DIRECTIVES = _words("include define undef if ifdef ifndef elif else endif error warning pragma")
CONDITIONALS = _words("if ifdef ifndef elif elifdef elifndef")

PRAGMAS = re.compile(
    r"(?:unroll|nounroll|once|nv_diagnostic\s+(?:push|pop)|(?:nv_)?diag_[a-z]+|GCC\s+diagnostic)\b"
)

_QUALIFIERS = _words(
    "__global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__"
    " __launch_bounds__ __forceinline__ __noinline__ __inline__ __inline_hint__ __grid_constant__"
    " __cluster_dims__ __block_size__ __maxnreg__ __align__ __volatile__ __asm__ __attribute__"
    " __nv_pure__ __func__ __const__ __builtin_align__ __cudart_builtin__ __VA_ARGS__ __VA_OPT__"
    " __LINE__"
)
TARGET_NAMES = re.compile(
    r"__CUDA_ARCH(?:_FEAT_SM[0-9]+_ALL|_SPECIFIC__|_FAMILY_SPECIFIC__|_LIST__|__)|__CUDACC__"
    r"|__NVCC__|__CUDACC_VER_(?:MAJOR|MINOR|BUILD)__|__CUDACC_RTC__|__HIP\w*__|__HIPCC__"
    r"|__GNUC__|__GNUC_MINOR__|__clang__|__linux__|_WIN32|_WIN64|_MSC_VER|__cplusplus"
)
"""Names that tell compiler and target; the simulator takes their values from nvcc."""
_ENUMERATORS = re.compile(r"__NV_(?:SATFINITE|NOSAT|E[2345]M[0123])")
_FORBIDDEN_FORMS = (
    (re.compile(r"__[A-Z0-9_]+"), "a name of the compiler or of CUDA's headers"),
    (re.compile(r"__\w+__"), "a predefined macro"),
    (re.compile(r"_[A-Z]\w*"), "a name reserved for libraries"),
    (re.compile(r"__has_\w+|__is_identifier"), "a probe of the compiler or of the host's files"),
    (re.compile(r"__nvvm_reflect|__builtin_is_\w+|__builtin_current_\w+"), "a probe of the target"),
    (re.compile(r"__builtin_(?:FILE|LINE|FUNCTION|COLUMN)"), "a probe of the build"),
    (re.compile(r"NV_(?:IF|DISPATCH|IS|PROVIDES|ANY|NO|HAS)_\w+"), "a test of the target"),
    (
        re.compile(r"(?:CUB|THRUST|CCCL|LIBCUDACXX)_\w+"),
        "a macro of a library that tests the target",
    ),
    (re.compile(r"KOPT_SIM\w*"), "a test of the simulator"),
    (re.compile(r"kopt_\w+"), "a name that belongs to kopt"),
    (re.compile(r"__(?:tsan|asan|ubsan|sanitizer|cxa)_\w+"), "a function of the checker"),
    (re.compile(r"NDEBUG"), "a setting of the compiler's command line"),
    (re.compile(r"gnu"), "the name space of attributes that only a CPU compiler knows"),
    (re.compile(r"no_sanitize\w*|disable_sanitizer_\w+"), "an attribute that hides accesses"),
)
HIDEABLE_PREFIXES = ("KOPT_SIM", "NV_", "CUB_", "THRUST_", "kopt_", "no_sanitize", "disable_sanit")
"""Beginnings of forbidden names without a leading underscore, which a paste could complete."""
HIDEABLE_NAMES = ("asm", "gnu", "NDEBUG")
"""Words that lead to what is refused by its surroundings, which a paste could complete."""
ATTRIBUTES = _words(
    "aligned packed noinline always_inline unused maybe_unused may_alias const pure hot cold"
    " device global shared constant host launch_bounds"
)
_ALLOWED = frozenset({"_Pragma"})
_PROTECTED_PREFIXES = ("kopt_", "KOPT_")
KEYWORDS = _words(
    "alignas alignof asm auto bool break case catch char class const constexpr const_cast continue"
    " decltype default defined delete do double dynamic_cast else enum explicit export extern false"
    " float for friend goto if inline int long mutable namespace new noexcept nullptr operator"
    " private protected public register reinterpret_cast return short signed sizeof static"
    " static_assert static_cast struct switch template this thread_local throw true try typedef"
    " typeid typename union unsigned using virtual void volatile wchar_t while and or not"
)


def forbidden_name(name: str) -> str | None:
    """Return what `name` is if no candidate may use it, else None."""
    if name in _QUALIFIERS or name in _ALLOWED or _ENUMERATORS.fullmatch(name):
        return None
    if TARGET_NAMES.fullmatch(name):
        return None
    for form, what in _FORBIDDEN_FORMS:
        if form.fullmatch(name):
            return what
    return None


def protected_macro(name: str) -> str | None:
    """Return why no candidate may define or undefine `name` as a macro, else None."""
    if name in KEYWORDS:
        return "it is a keyword"
    if name in ATTRIBUTES:
        return "it is the name of an attribute"
    if name.startswith(_PROTECTED_PREFIXES):
        return "names with kopt_ belong to kopt"
    if name.startswith("__"):
        return "names with two leading underscores belong to the compiler"
    return None


@lru_cache
def kopt_headers() -> frozenset[str]:
    """Return the names under which a candidate includes kopt's headers: kopt/<file>.cuh."""
    folder = files("kopt.kernels").joinpath("common")
    return frozenset(
        f"kopt/{entry.name}" for entry in folder.iterdir() if entry.name[-4:] == ".cuh"
    )
