"""Whether a technique can apply to a kernel at all: checked by rule, before it is drawn.

A rule refuses only what is known not to fit. What the definition of a kernel does not tell counts
as fitting: a try decides it better than a guess.
"""

import re
from collections.abc import Callable, Collection, Mapping
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
    """Return what decides which techniques can apply to a workload of `problem` on `arch`.

    Families in `retired` get no further candidates in this run.

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
            one.role == "in" and _is_shared(problem, one) and prod(shapes[one.name]) > 1
            for one in problem.tensors
        ),
        flop_per_byte=model.flop_per_byte if model.flop else None,
        compute_capability=gpu.compute_capability,
        sm_count=gpu.sm_count,
        retired=frozenset(retired),
    )


def _is_shared(problem: Problem, tensor: TensorSpec) -> bool:
    """Return whether all rows read a tensor; without rows, whether it is a table or weight."""
    return tensor.static if problem.row_axis is None else problem.row_axis not in tensor.shape


def why_not(technique: Technique, kernel: KernelTraits) -> str | None:
    """Return why `technique` cannot apply to `kernel`, in a few words; None if it may."""
    if technique.family in kernel.retired:
        return f"its family {technique.family} is retired in this run"
    for need in technique.needs:
        if need not in NEEDS:
            return f"it needs {need}, which no rule knows"
        words, holds = NEEDS[need]
        if not holds(kernel):
            return f"it needs {words}"
    return None


Rule = Callable[[KernelTraits], bool]


def _says(pattern: str) -> Rule:
    """Return a rule: the description has such a word, or there is no description."""
    found = re.compile(pattern)
    return lambda kernel: not kernel.text.strip() or found.search(kernel.text) is not None


def _has_dtype(*starts: str) -> Rule:
    return lambda kernel: any(dtype.startswith(starts) for dtype in kernel.dtypes)


NEEDS: Mapping[str, tuple[str, Rule]] = {
    "few_rows": (
        "fewer rows than two for each SM",
        lambda kernel: kernel.rows < 2 * kernel.sm_count,
    ),
    "fp4": ("packed 4-bit values", _has_dtype("uint8", "float4")),  # codes, two in a byte
    "fp8": ("8-bit floating-point values", _has_dtype("float8")),
    "half": ("16-bit floating-point values", _has_dtype("bfloat16", "float16")),
    "long_rows": (
        f"rows of {LONG_ROW} elements or more",
        lambda kernel: kernel.row_elements >= LONG_ROW,
    ),
    "many_rows": (
        "more rows than the GPU has SMs",
        lambda kernel: kernel.rows > kernel.sm_count,
    ),
    "matmul": (
        f"at least {MATRIX_INTENSITY:.0f} operations for each byte",
        lambda kernel: kernel.flop_per_byte is None or kernel.flop_per_byte >= MATRIX_INTENSITY,
    ),
    "only_sm_90": ("an sm_90 target", lambda kernel: kernel.compute_capability[0] == 9),
    "only_sm_100": ("an sm_100 target", lambda kernel: kernel.compute_capability[0] == 10),
    "reduction": (
        "a reduction over rows",
        _says(r"norm|softmax|mean|sum|max|min\b|amax|reduc|argm|logsumexp|average"),
    ),
    "scale_tiles": (
        "scale factors in 128x4 tiles",
        lambda kernel: "sf_128x4" in kernel.layouts,
    ),
    "shared_operand": (
        "an operand that all rows share",
        lambda kernel: kernel.has_shared_operand,
    ),
    "short_rows": (
        f"rows of at most {SHORT_ROW} elements",
        lambda kernel: kernel.row_elements <= SHORT_ROW,
    ),
    "sm_80": ("an sm_80 target or later", lambda kernel: kernel.compute_capability >= (8, 0)),
    "sm_90": ("an sm_90 target or later", lambda kernel: kernel.compute_capability >= (9, 0)),
    "sm_100": ("an sm_100 target or later", lambda kernel: kernel.compute_capability >= (10, 0)),
    "softmax": (
        "a softmax or a merge of exponential sums",
        _says(r"softmax|logsumexp|sum of exponentials|attention"),
    ),
    "special_math": (
        "roots, exponentials or divisions",
        _says(r"exp|log|sqrt|silu|sigmoid|gelu|tanh|softmax|sin|cos|norm|swish|\^|/ "),
    ),
}
"""The words of `Technique.needs`: what each asks of a kernel, and its rule."""
