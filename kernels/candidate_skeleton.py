"""The skeleton of a candidate: a header and a signature that fit a problem, with an empty body.

It parses, compiles and launches; it writes nothing, so a check says `unwritten_output`. The
problem's reference.cu is the complete kernel.
"""

from collections.abc import Iterator

from kopt.kernels.dtypes import DTYPE_CUDA_TYPES
from kopt.kernels.problem import Problem, TensorSpec

INCLUDES = {
    "bfloat16": "cuda_bf16.h",
    "float16": "cuda_fp16.h",
    "float8_e4m3fn": "cuda_fp8.h",
    "float8_e5m2": "cuda_fp8.h",
}

TEMPLATE = """\
/* kopt: 1
family: other
note: one thread per row; the body is still empty
tune: {{BLOCK: [128, 256]}}
launch:
  - kernel: {name}
    grid: ceil_div({rows}, BLOCK)
    block: BLOCK
    args: [{arguments}]
*/
{includes}

extern "C" __global__ void __launch_bounds__(BLOCK) {name}(
{parameters}) {{
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row >= {rows}) return;
  // Read row `row` of {inputs};
  // write row `row` of {outputs}.
}}
"""


def candidate_skeleton(problem: Problem) -> str:
    """Return the source of a candidate for `problem` with one thread per row."""
    tensors = problem.tensors
    axes = _passed_axes(problem)
    scalars = problem.scalars
    arguments = [item.name for item in tensors] + axes + [item.name for item in scalars]
    headers = dict.fromkeys(
        INCLUDES[tensor.dtype] for tensor in tensors if tensor.dtype in INCLUDES
    )
    tails = ", ".join(
        [f"int32_t {axis}" for axis in axes]
        + [f"{DTYPE_CUDA_TYPES[scalar.dtype][0]} {scalar.name}" for scalar in scalars]
    )
    return TEMPLATE.format(
        name=problem.name,
        rows=problem.row_axis,
        arguments=", ".join(arguments),
        includes="\n".join(f"#include <{header}>" for header in (*headers, "cstdint")),
        parameters="\n".join((*_pointer_parameters(tensors), f"    {tails}")),
        inputs=", ".join(tensor.name for tensor in tensors if tensor.role != "out"),
        outputs=", ".join(tensor.name for tensor in tensors if tensor.role != "in"),
    )


def _passed_axes(problem: Problem) -> list[str]:
    """Return the variable axes, and the row axis if it is a computed one."""
    variable = [axis for axis, expression in problem.axes.items() if expression is None]
    return list(dict.fromkeys((*variable, problem.row_axis)))


def _pointer_parameters(tensors: tuple[TensorSpec, ...]) -> Iterator[str]:
    for tensor in tensors:
        const = "const " if tensor.role == "in" else ""
        pointee = DTYPE_CUDA_TYPES[tensor.dtype][0]
        shape = ", ".join(tensor.shape)
        layout = "" if tensor.layout == "row_major" else f", {tensor.layout}"
        yield (
            f"    {const}{pointee}* __restrict__ {tensor.name},"
            f"  // {tensor.role} {tensor.dtype} ({shape}){layout}"
        )
