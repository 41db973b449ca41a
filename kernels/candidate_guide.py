"""How to write a candidate: the guide that an agent reads, and a complete file to begin with.

The guide is the short form of docs/candidates.md; its examples are parsed by the tests.
"""

from collections.abc import Iterator

from kopt.kernels.dtypes import DTYPE_CUDA_TYPES
from kopt.kernels.problem import Problem, TensorSpec

GUIDE = """\
One `.cu` file of device code. It opens with a comment, strict YAML, that says how it is launched:

```yaml
kopt: 1
family: vectorization
note: "what this candidate tries, one line"
tune: {BLOCK: [128, 256]}
launch:
  - kernel: scale_rows
    grid: ceil_div(R, BLOCK)
    block: BLOCK
    args: [x, factor, out, C]
```

The file begins with `/* kopt: 1`; the header ends at `*/`. Keys:

| key | holds |
|---|---|
| family | the strategy, or a list with the main one first; the search keeps families apart |
| where | shapes it supports, e.g. `H % 8 == 0`; a full check runs them all; default `"true"` |
| tune | `NAME: [values]`, each a macro; names have 3 to 32 characters; first value: default |
| tune_where | conditions that a choice of tune values must satisfy |
| specialize | axes as compile-time constants: the macro `KOPT_C` for axis C |
| flags | `fast_math: false`, `max_registers: 16` to `255` |
| scratch | `name: {dtype: float32, shape: "R, 4", init: zero}`; garbage without `init: zero` |
| tensor_maps | `name: {tensor: x, box: "1, 64", swizzle: 128}`: TMA descriptors |
| launch | 1 to 1024 of them: kernel, grid, block, args, smem, cluster, cooperative, pdl, carveout |
| variants | instead of launch: `{when: C >= 512, set: {BLOCK: 256}, launch: [...]}`, ... |

- Expressions: integers, axes, tune names, SM_COUNT, `+ - * // %`, ceil_div, align_up, min, max,
  next_pow2; in grid also blocks_per_sm.
- `kernel` names an `extern "C" __global__ void` function; args stand in the order of its
  parameters: tensors, scratch, axes, scalars, `{int32: "C // 8"}`. Types are compared.
- Tensors of role `in` are const. Every element of every output must be written.
- Includes: `<kopt/nvfp4_utils.cuh>` (e2m1, e4m3, block scales), `<kopt/float2_math.cuh>` (two
  floats an instruction on sm_100), `<kopt/global_access.cuh>` (16 and 32 byte accesses, hints),
  `<kopt/cp_async.cuh>`, `<kopt/mbarrier.cuh>`, `<kopt/bulk_copy.cuh>` (bulk copies, TMA),
  `<kopt/cluster_exchange.cuh>` (st.async in a cluster), `<kopt/griddepcontrol.cuh>` (pdl), CUDA's
  own headers, standard headers. No file of your own.
- Refused: tests of the simulator, printf, device-side allocation and launches,
  state at module scope that is not __constant__.
- Usual inline PTX runs on sim, too; tensor-core instructions and named barriers on a GPU only.
"""


INCLUDES = {
    "bfloat16": "cuda_bf16.h",
    "float16": "cuda_fp16.h",
    "float8_e4m3fn": "cuda_fp8.h",
    "float8_e5m2": "cuda_fp8.h",
}

TEMPLATE = """\
/* kopt: 1
family: other
tune: {{BLOCK: [256, 128, 512]}}
launch:
  - kernel: {name}
    grid: {grid}
    block: BLOCK
    args: [{arguments}]
*/
{includes}

extern "C" __global__ void __launch_bounds__(BLOCK) {name}(
{parameters}) {{
{mapping}
    // Read {inputs};
    // write every element of {outputs}.
  }}
}}
"""
_OF_ROWS = """\
  const int row = blockIdx.x;  // one block for each of the {rows} rows
  for (int column = threadIdx.x; column < {columns}; column += BLOCK) {{"""
_OF_ELEMENTS = """\
  const int index = blockIdx.x * BLOCK + threadIdx.x;  // one thread per element
  if (index < {rows}) {{"""


def candidate_skeleton(problem: Problem) -> str:
    """Return a candidate for `problem` without a body: one block per row, one loop over columns.

    It has no note: that is the hypothesis of who fills it in.
    """
    tensors, scalars = problem.tensors, problem.scalars
    shape = _looped_shape(problem)
    rows, columns = (" * ".join(shape[:-1]), shape[-1]) if shape else (_elements(problem), None)
    axes = _passed_axes(problem, columns)
    arguments = [item.name for item in tensors] + axes + [item.name for item in scalars]
    headers = dict.fromkeys(
        INCLUDES[tensor.dtype] for tensor in tensors if tensor.dtype in INCLUDES
    )
    tails = ", ".join(
        [f"int32_t {axis}" for axis in axes]
        + [f"{DTYPE_CUDA_TYPES[scalar.dtype]} {scalar.name}" for scalar in scalars]
    )
    mapping = _OF_ROWS if columns else _OF_ELEMENTS
    return TEMPLATE.format(
        name=problem.name,
        grid=rows if columns else f"ceil_div({rows}, BLOCK)",
        arguments=", ".join(arguments),
        includes="\n".join(f"#include <{header}>" for header in (*headers, "cstdint")),
        parameters="\n".join((*_pointer_parameters(tensors), f"    {tails}")),
        mapping=mapping.format(rows=rows, columns=columns),
        inputs=", ".join(tensor.name for tensor in tensors if tensor.role != "out"),
        outputs=", ".join(tensor.name for tensor in tensors if tensor.role != "in"),
    )


def _looped_shape(problem: Problem) -> tuple[str, ...]:
    """Return the shape whose last axis a block goes through; () where no tensor has rows.

    An output's, if its last axis is a variable one; else an input's of that kind, because the
    output is packed; else that of the output with the longest rows.
    """
    tables = [tensor for tensor in problem.tensors if len(tensor.shape) > 1]
    outputs = [tensor for tensor in tables if tensor.role != "in"]
    for tensor in (*outputs, *tables):
        has_rows = problem.row_axis is None or problem.row_axis in tensor.shape[:-1]
        if has_rows and problem.axes.get(tensor.shape[-1], "") is None:
            return tensor.shape
    axes = problem.workloads[0].axes
    longest = max(outputs, key=lambda one: axes.get(one.shape[-1], 0), default=None)
    return () if longest is None else longest.shape


def _elements(problem: Problem) -> str:
    """Return the elements that threads go through where no tensor has rows and columns."""
    lengths = (tensor.shape[0] for tensor in problem.tensors if tensor.shape)
    return problem.row_axis or next(lengths, "1")


def _passed_axes(problem: Problem, columns: str | None) -> list[str]:
    """Return the variable axes, and the row axis and `columns` if they are computed ones."""
    variable = [axis for axis, expression in problem.axes.items() if expression is None]
    more = (axis for axis in (problem.row_axis, columns) if axis is not None)
    return list(dict.fromkeys((*variable, *more)))


def _pointer_parameters(tensors: tuple[TensorSpec, ...]) -> Iterator[str]:
    for tensor in tensors:
        const = "const " if tensor.role == "in" else ""
        pointee = DTYPE_CUDA_TYPES[tensor.dtype]
        shape = ", ".join(tensor.shape)
        layout = "" if tensor.layout == "row_major" else f", {tensor.layout}"
        yield (
            f"    {const}{pointee}* __restrict__ {tensor.name},"
            f"  // {tensor.role} {tensor.dtype} ({shape}){layout}"
        )
