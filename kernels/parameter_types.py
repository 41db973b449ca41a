"""C++17 text that asserts the exact parameter types of every launched kernel.

The cubin knows offsets and sizes only: a `float*` in the place of a `__nv_bfloat16*` looks alike.
So the compiler decides, from text appended to the candidate's source. It includes nothing (types
of CUDA headers are declared as the structs that they are), and each of its names starts with
`kopt_`, which the source screen keeps candidates from defining. nvcc, NVRTC and g++ accept it.
"""

from collections.abc import Iterator

from kopt.config.near_matches import either

from .dtypes import DTYPE_SPELLINGS
from .plan import Argument, Launch, LaunchPlan, described_argument
from .problem import Problem

ASSERTIONS_FILE = "launch_plan"
"""The file name of these lines in compiler messages."""

_NEAR_COUNTS = 8
"""How far the number of parameters may be off for the message to say it."""

_SHOWN = {
    "unsigned char": "uint8_t",
    "signed char": "int8_t",
    "short": "int16_t",
    "long": "int64_t",
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
template <class... kopt_t>
__device__ kopt_list<kopt_t...> kopt_parameters(void (*)(kopt_t...), int);
__device__ kopt_missing kopt_parameters(kopt_missing (*)(kopt_missing), long);
"""


def type_assertions(plan: LaunchPlan, problem: Problem) -> str:
    """Return the text to append to the candidate's source.

    An assertion that fails names the kernel, the line of its launch in the header, the argument,
    and the accepted types. A tensor is a pointer, const for role `in`; scratch a pointer; an axis
    int or a 64-bit integer; a scalar its dtype; a tensor map CUtensorMap by value.

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
    ]
    for ordinal, argument in enumerate(launch.arguments):
        accepted = _accepted_types(argument, plan, problem)
        shown = either(tuple(dict.fromkeys(_shown(spelling) for spelling in accepted)))
        condition = f"kopt_accepts<{name}, {ordinal}, {', '.join(accepted)}>::kopt_is"
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
        return (*DTYPE_SPELLINGS["int32"], *DTYPE_SPELLINGS["int64"])
    return DTYPE_SPELLINGS[argument.kind]


# What one launch writes, another may take as const and only read.
_READ_OR_WRITTEN = ("", "const ")


def _pointers(dtype: str, qualifiers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{const}{name}*" for const in qualifiers for name in DTYPE_SPELLINGS[dtype])


def _shown(spelling: str) -> str:
    """Return `spelling` as authors write it: uint8_t* for unsigned char*."""
    const = "const " if spelling.startswith("const ") else ""
    core = spelling.removeprefix("const ").removesuffix("*")
    return f"{const}{_SHOWN.get(core, core)}{'*' if spelling.endswith('*') else ''}"
