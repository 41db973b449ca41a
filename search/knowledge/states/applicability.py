"""Whether a technique can apply to a kernel at all: checked by rule, before it is drawn.

A rule refuses only what is known not to fit. What the definition of a kernel does not tell counts
as fitting: a try decides it better than a guess.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.problem import Problem, TensorSpec, Workload, tensor_shape
from kopt.kernels.roofline import workload_bytes
from kopt.search.knowledge.records import Technique

SHORT_ROW = 4096
"""Elements: up to this a warp holds a row of 16-bit values in 64 registers a lane."""
LONG_ROW = 4096
"""Elements: from this on a row feeds several blocks with a 16-byte load for each of 256 threads."""
MATRIX_INTENSITY = 8.0
"""Operations per byte below which matrix instructions cannot pay: fp32 lanes alone keep up with
DRAM to about twice that. Source: data sheets in config/gpus (H100: 67 TFLOP/s / 3.35 TB/s = 20)."""

_REDUCTION = re.compile(r"norm|softmax|mean|sum|max|min\b|amax|reduc|argm|logsumexp|average")
_SPECIAL = re.compile(r"exp|log|sqrt|silu|sigmoid|gelu|tanh|softmax|sin|cos|norm|swish|\^|/ ")
_SOFTMAX = re.compile(r"softmax|logsumexp|sum of exponentials|attention")


@dataclass(frozen=True)
class KernelTraits:
    """Properties of a kernel, its target and its run that decide whether a technique can apply."""

    text: str
    """Operation type and description, lower case; may be empty."""
    dtypes: frozenset[str]
    layouts: frozenset[str]
    row_elements: int
    """Elements of the innermost axis of the largest tensor."""
    rows: int
    """Elements of that tensor / row_elements."""
    has_shared_operand: bool
    """Whether a tensor of several elements is the same for all rows."""
    flop_per_byte: float | None
    """Operations per byte; None where the definition counts no operations."""
    compute_capability: tuple[int, int]
    sm_count: int
    retired: frozenset[str] = frozenset()
    """Families that the run has given up."""


def kernel_traits(
    problem: Problem, workload: Workload, arch: str, retired: Collection[str] = ()
) -> KernelTraits:
    """Return what decides which techniques can apply to a workload.

    Args:
        problem: Its tensors and its description are read.
        workload: One of the problem's.
        arch: Compiler target, e.g. sm_90a.
        retired: Families that get no further candidates in this run.

    Raises:
        ToolError: No data sheet has this architecture.
    """
    gpu = gpu_for_arch(arch)
    shapes = {one.name: tensor_shape(one, workload.axes) for one in problem.tensors}
    largest = max(shapes.values(), key=prod, default=())
    row_elements = largest[-1] if largest else 1
    model = workload_bytes(problem, workload)
    return KernelTraits(
        text=f"{problem.op_type} {problem.description}".lower(),
        dtypes=frozenset(one.dtype for one in problem.tensors),
        layouts=frozenset(one.layout for one in problem.tensors),
        row_elements=row_elements,
        rows=prod(largest) // max(row_elements, 1),
        has_shared_operand=any(
            _is_shared(one, problem.row_axis) and prod(shapes[one.name]) > 1
            for one in problem.tensors
        ),
        flop_per_byte=model.flop_per_byte if model.flop else None,
        compute_capability=gpu.compute_capability,
        sm_count=gpu.sm_count,
        retired=frozenset(retired),
    )


def why_not(technique: Technique, kernel: KernelTraits) -> str | None:
    """Return why `technique` cannot apply to `kernel`, in a few words; None if it may."""
    if technique.family in kernel.retired:
        return f"its family {technique.family} is retired in this run"
    for need in technique.needs:
        if need not in _RULES:
            return f"it needs {need}, which no rule knows"
        if not _RULES[need](kernel):
            return f"it needs {NEEDS[need]}"
    return None


def _is_shared(tensor: TensorSpec, row_axis: str) -> bool:
    return tensor.role == "in" and row_axis not in tensor.shape


def _says(pattern: re.Pattern[str]) -> Callable[[KernelTraits], bool]:
    """Return a rule: the description has such a word, or there is no description."""
    return lambda kernel: not kernel.text.strip() or pattern.search(kernel.text) is not None


def _from(major: int) -> Callable[[KernelTraits], bool]:
    return lambda kernel: kernel.compute_capability >= (major, 0)


def _only(major: int) -> Callable[[KernelTraits], bool]:
    return lambda kernel: kernel.compute_capability[0] == major


def _has_dtype(*starts: str) -> Callable[[KernelTraits], bool]:
    return lambda kernel: any(dtype.startswith(starts) for dtype in kernel.dtypes)


def _may_use_matrices(kernel: KernelTraits) -> bool:
    intensity = kernel.flop_per_byte
    return intensity is None or intensity >= MATRIX_INTENSITY


NEEDS = {
    "few_rows": "fewer rows than two for each SM",
    "fp4": "packed 4-bit values",
    "fp8": "8-bit floating-point values",
    "half": "16-bit floating-point values",
    "long_rows": f"rows of {LONG_ROW} elements or more",
    "many_rows": "more rows than the GPU has SMs",
    "matmul": f"at least {MATRIX_INTENSITY:.0f} operations for each byte",
    "only_sm_90": "an sm_90 target",
    "only_sm_100": "an sm_100 target",
    "reduction": "a reduction over rows",
    "scale_tiles": "scale factors in 128x4 tiles",
    "shared_operand": "an operand that all rows share",
    "short_rows": f"rows of at most {SHORT_ROW} elements",
    "sm_80": "an sm_80 target or later",
    "sm_90": "an sm_90 target or later",
    "sm_100": "an sm_100 target or later",
    "softmax": "a softmax or a merge of exponential sums",
    "special_math": "roots, exponentials or divisions",
}
"""The words of `Technique.needs`, and what each asks of a kernel."""

_RULES: dict[str, Callable[[KernelTraits], bool]] = {
    "few_rows": lambda kernel: kernel.rows < 2 * kernel.sm_count,
    "fp4": _has_dtype("uint8", "float4"),  # FP4 codes travel as uint8, two in a byte
    "fp8": _has_dtype("float8"),
    "half": _has_dtype("bfloat16", "float16"),
    "long_rows": lambda kernel: kernel.row_elements >= LONG_ROW,
    "many_rows": lambda kernel: kernel.rows > kernel.sm_count,
    "matmul": _may_use_matrices,
    "only_sm_90": _only(9),
    "only_sm_100": _only(10),
    "reduction": _says(_REDUCTION),
    "scale_tiles": lambda kernel: "sf_128x4" in kernel.layouts,
    "shared_operand": lambda kernel: kernel.has_shared_operand,
    "short_rows": lambda kernel: kernel.row_elements <= SHORT_ROW,
    "sm_80": _from(8),
    "sm_90": _from(9),
    "sm_100": _from(10),
    "softmax": _says(_SOFTMAX),
    "special_math": _says(_SPECIAL),
}
