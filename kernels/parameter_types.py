"""C++17 text that asserts the exact parameter types of every launched kernel.

The cubin knows offsets and sizes only: a `float*` in the place of a `__nv_bfloat16*` looks alike.
So the compiler decides, from text appended to the candidate's source. It includes nothing (types
of CUDA headers are declared as the structs that they are), and each of its names starts with
`kopt_`, which the source screen keeps candidates from defining. nvcc, NVRTC and g++ accept it.
"""

from collections.abc import Iterator

from kopt.config.near_matches import either

from .dtypes import DTYPE_SIZE_BYTES, DTYPE_SPELLINGS, UNSIGNED_SPELLINGS
from .plan import Argument, Launch, LaunchPlan, described_argument
from .problem import Problem

ASSERTIONS_FILE = "launch_plan"
"""The file name of these lines in compiler messages."""

_NEAR_COUNTS = 8
"""How far the number of parameters may be off for the message to say it."""

# Types of one element, or of two, that are no raw storage of another dtype.
_ELEMENT_TYPES = (
    "__half",
    "__nv_bfloat16",
    "__nv_fp8_e4m3",
    "__nv_fp8_e5m2",
    "__half2",
    "__nv_bfloat162",
)
_PAIRS = {"float16": "__half2", "bfloat16": "__nv_bfloat162"}

_SHOWN = {
    "unsigned char": "uint8_t",
    "signed char": "int8_t",
    "short": "int16_t",
    "long": "int64_t",
    "unsigned int": "uint32_t",
    "unsigned long": "uint64_t",
    "CUtensorMap_st": "const __grid_constant__ CUtensorMap",
}

# Two overloads see the kernel's name: its own signature, and, where the candidate declares no
# such function, the declaration in kopt_fallback. The int parameter makes the first the better.
# NVRTC takes no function without an execution space, not even one that is never called.
_PRELUDE = """
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;
struct __half2;
struct __nv_bfloat162;
struct CUtensorMap_st;
struct kopt_missing;
template <class... kopt_t> struct kopt_list;
template <class kopt_a, class kopt_b> struct kopt_same { enum : bool { kopt_is = false }; };
template <class kopt_a> struct kopt_same<kopt_a, kopt_a> { enum : bool { kopt_is = true }; };
template <class kopt_l> struct kopt_count { enum : int { kopt_is = -1 }; };
template <class... kopt_t> struct kopt_count<kopt_list<kopt_t...>> {
  enum : int { kopt_is = sizeof...(kopt_t) };
};
template <int kopt_n, class kopt_l> struct kopt_at { using kopt_type = kopt_missing; };
template <class kopt_h, class... kopt_t> struct kopt_at<0, kopt_list<kopt_h, kopt_t...>> {
  using kopt_type = kopt_h;
};
template <int kopt_n, class kopt_h, class... kopt_t>
struct kopt_at<kopt_n, kopt_list<kopt_h, kopt_t...>> : kopt_at<kopt_n - 1, kopt_list<kopt_t...>> {};
template <class kopt_l, int kopt_n, class... kopt_accepted> struct kopt_accepts {
  enum : bool {
    kopt_is =
        (kopt_same<typename kopt_at<kopt_n, kopt_l>::kopt_type, kopt_accepted>::kopt_is || ...)
  };
};
template <class kopt_a, class... kopt_t> struct kopt_among {
  enum : bool { kopt_is = (kopt_same<kopt_a, kopt_t>::kopt_is || ...) };
};
template <class kopt_a> struct kopt_plain { using kopt_type = kopt_a; };
template <class kopt_a> struct kopt_plain<const kopt_a> { using kopt_type = kopt_a; };
template <class kopt_a> struct kopt_whole { enum : unsigned { kopt_is = sizeof(kopt_a) }; };
template <> struct kopt_whole<void> { enum : unsigned { kopt_is = 0 }; };
template <class kopt_a, unsigned kopt_size, bool kopt_is_class, class... kopt_others>
struct kopt_stores {
  enum : bool {
    kopt_is = kopt_among<kopt_a, void, char, unsigned char>::kopt_is ||
              (kopt_among<kopt_a, unsigned short, unsigned int, unsigned long,
                          unsigned long long>::kopt_is &&
               kopt_whole<kopt_a>::kopt_is % kopt_size == 0)
  };
};
template <class kopt_a, unsigned kopt_size, class... kopt_others>
struct kopt_stores<kopt_a, kopt_size, true, kopt_others...> {
  enum : bool {
    kopt_is = !kopt_among<kopt_a, kopt_others...>::kopt_is &&
              kopt_whole<kopt_a>::kopt_is % kopt_size == 0
  };
};
template <class kopt_p, bool kopt_read_only, unsigned kopt_size, class... kopt_others>
struct kopt_raw {
  enum : bool { kopt_is = false };
};
template <class kopt_a, bool kopt_read_only, unsigned kopt_size, class... kopt_others>
struct kopt_raw<kopt_a*, kopt_read_only, kopt_size, kopt_others...> {
  using kopt_b = typename kopt_plain<kopt_a>::kopt_type;
  enum : bool {
    kopt_is = (!kopt_read_only || !kopt_same<kopt_a, kopt_b>::kopt_is) &&
              kopt_stores<kopt_b, kopt_size, __is_class(kopt_b) || __is_union(kopt_b),
                          kopt_others...>::kopt_is
  };
};
template <class... kopt_t>
__device__ kopt_list<kopt_t...> kopt_parameters(void (*)(kopt_t...), int);
__device__ kopt_missing kopt_parameters(kopt_missing (*)(kopt_missing), long);
"""


def type_assertions(plan: LaunchPlan, problem: Problem) -> str:
    """Return the text to append to the candidate's source.

    An assertion that fails names the kernel, the line of its launch in the header, the argument,
    and the accepted types. A tensor is a pointer, const for role `in`; scratch a pointer; an axis
    an integer of 32 or 64 bits; a scalar its dtype; a tensor map CUtensorMap by value. A pointer
    may be one to raw storage: void, unsigned integers, vectors and structs of whole elements.

    Args:
        plan: Any plan of the candidate with these defines: a header that gives one of them
            another value is an error too. Of the launches only names and arguments count.
        problem: Roles and dtypes of the tensors.
    """
    kernels = sorted({launch.kernel for launch in plan.launches})
    fallbacks = "".join(f"__device__ kopt_missing {kernel}(kopt_missing);\n" for kernel in kernels)
    # The blank lines end a last line of the candidate that has no newline or ends in a backslash.
    lines = [
        f'\n\n#line 1 "{ASSERTIONS_FILE}"{_PRELUDE}',
        f"namespace kopt_fallback {{\n{fallbacks}}}\nusing namespace kopt_fallback;\n",
    ]
    for name, value in sorted(plan.defines.items()):
        message = f"the tune name {name} is also a macro of a header: choose another"
        lines.append(f'static_assert(({name}) == ({value}), "{message}");\n')
    for index, launch in enumerate(plan.launches, 1):
        lines.append(_launch_assertions(f"kopt_launch_{index}", launch, plan, problem))
    return "".join(lines)


def _launch_assertions(name: str, launch: Launch, plan: LaunchPlan, problem: Problem) -> str:
    where = f"kernel '{launch.kernel}'"
    if launch.line is not None:
        where += f" (launched in line {launch.line} of the header)"
    count = len(launch.arguments)
    is_missing = f"kopt_count<{name}>::kopt_is < 0"
    has_count = f"kopt_count<{name}>::kopt_is == {count}"
    lines = [
        f"using {name} = decltype(kopt_parameters({launch.kernel}, 0));",
        f'static_assert(!({is_missing}), "{where}: the source has no such function at global scope;'
        ' a launched kernel is an extern \\"C\\" __global__ void function without overloads");',
        *_count_assertions(name, launch, where),
        *_struct_assertions(name, launch, where),
    ]
    for ordinal, argument in enumerate(launch.arguments):
        accepted = _accepted_types(argument, plan, problem)
        shown = either(tuple(dict.fromkeys(_shown(spelling) for spelling in accepted)))
        condition = f"kopt_accepts<{name}, {ordinal}, {', '.join(accepted)}>::kopt_is"
        dtype = _element_dtype(argument, plan, problem)
        if dtype is not None:
            shown += " (or a pointer to vectors, unsigned integers or void)"
            condition = (
                f"({condition} || {_is_raw(f'kopt_at<{ordinal}, {name}>', dtype, accepted)})"
            )
        passed = described_argument(argument, problem)
        message = f"{where}: parameter {ordinal + 1}, {passed}, must be {shown}"
        lines.append(f'static_assert(!({has_count}) || {condition}, "{message}");')
    return "\n".join(lines) + "\n"


def _count_assertions(name: str, launch: Launch, where: str) -> Iterator[str]:
    """Yield assertions of the number of parameters, of which at most one fails and says it.

    A message of C++17 holds no number that the compiler finds out, so each near one has its own.
    """
    count = len(launch.arguments)
    passed = ", ".join(argument.name for argument in launch.arguments)
    found = f"kopt_count<{name}>::kopt_is"
    begin = f"{where}: the plan passes {count} arguments ({passed}), the kernel has"
    near = range(max(0, count - _NEAR_COUNTS), count + _NEAR_COUNTS + 1)
    for other in near:
        if other != count:
            yield f'static_assert({found} != {other}, "{begin} {other}");'
    is_near = f"({found} >= {near[0]} && {found} <= {near[-1]})"
    yield f'static_assert({found} < 0 || {is_near}, "{begin} another number of parameters");'


def _struct_assertions(name: str, launch: Launch, where: str) -> Iterator[str]:
    """Yield an assertion that the first parameter is no struct that holds the arguments."""
    if launch.arguments and launch.arguments[0].kind != "tensor_map":
        first = f"kopt_at<0, {name}>::kopt_type"
        is_struct = f"__is_class({first}) && !kopt_same<{first}, kopt_missing>::kopt_is"
        message = (
            f"{where}: a struct is no argument of a plan; let the kernel take its members"
            " as parameters and fill the struct itself"
        )
        yield f'static_assert(!({is_struct}), "{message}");'


def _element_dtype(argument: Argument, plan: LaunchPlan, problem: Problem) -> str | None:
    """Return the dtype behind a pointer argument; None for what is no pointer."""
    if argument.kind == "tensor":
        return problem.tensor(argument.name).dtype
    if argument.kind == "scratch":
        return next(entry.dtype for entry in plan.scratch if entry.name == argument.name)
    return None


def _is_raw(parameter: str, dtype: str, accepted: tuple[str, ...]) -> str:
    """Return the condition that a parameter points to raw storage of whole elements."""
    own = {*DTYPE_SPELLINGS[dtype], _PAIRS.get(dtype)}
    others = [name for name in _ELEMENT_TYPES if name not in own]
    is_read_only = all(spelling.startswith("const ") for spelling in accepted)
    words = [
        f"{parameter}::kopt_type",
        str(is_read_only).lower(),
        str(DTYPE_SIZE_BYTES[dtype]),
        *others,
    ]
    return f"kopt_raw<{', '.join(words)}>::kopt_is"


def _accepted_types(argument: Argument, plan: LaunchPlan, problem: Problem) -> tuple[str, ...]:
    if argument.kind == "tensor":
        tensor = problem.tensor(argument.name)
        return _pointers(tensor.dtype, ("const ",) if tensor.role == "in" else _READ_OR_WRITTEN)
    if argument.kind == "scratch":
        scratch = next(entry for entry in plan.scratch if entry.name == argument.name)
        return _pointers(scratch.dtype, _READ_OR_WRITTEN)
    if argument.kind == "tensor_map":
        return ("CUtensorMap_st",)
    if argument.is_axis:
        return (*_integers("int32"), *_integers("int64"))
    if argument.kind in UNSIGNED_SPELLINGS and not _is_scalar(argument, problem):
        return _integers(argument.kind)
    return DTYPE_SPELLINGS[argument.kind]


def _is_scalar(argument: Argument, problem: Problem) -> bool:
    return any(scalar.name == argument.name for scalar in problem.scalars)


def _integers(dtype: str) -> tuple[str, ...]:
    return (*DTYPE_SPELLINGS[dtype], *UNSIGNED_SPELLINGS[dtype])


# What one launch writes, another may take as const and only read.
_READ_OR_WRITTEN = ("", "const ")


def _pointers(dtype: str, qualifiers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{const}{name}*" for const in qualifiers for name in DTYPE_SPELLINGS[dtype])


def _shown(spelling: str) -> str:
    """Return `spelling` as authors write it: uint8_t* for unsigned char*."""
    const = "const " if spelling.startswith("const ") else ""
    core = spelling.removeprefix("const ").removesuffix("*")
    return f"{const}{_SHOWN.get(core, core)}{'*' if spelling.endswith('*') else ''}"
