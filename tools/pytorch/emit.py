"""The first candidate of an imported PyTorch function: kernels that are right and readable.

It is where a search starts, not where it ends. What is made row by row is one kernel; otherwise
each node that is no index expression is a kernel or part of one. Kernels are named after nodes,
with the user's line above. Whether it is right is decided by `kopt check` like any candidate.
"""

import re
from collections.abc import Mapping

from kopt.config.errors import ToolError
from kopt.kernels.header import MAX_LAUNCHES
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.graph import Graph

from .lowering.buffers import Buffer, Kernel, Use
from .lowering.cuda_types import STORED
from .lowering.device_functions import device_functions
from .lowering.folds import FOLD_FUNCTIONS
from .lowering.graph_lowering import lowered
from .lowering.program import LoweredProgram
from .lowering.row_functions import ROW_FUNCTIONS
from .lowering.row_schedule import PLAIN, TECHNIQUES, Schedule
from .lowering.scratch_arena import ScratchSlot, arranged
from .lowering.sizes import DEFAULT_PARTS

_TUNE = {
    "BLOCK": (256, 128, 512),
    "REDUCE": (256, 128, 512, 1024),
    "PARTS": (DEFAULT_PARTS, 32, 128, 256),
    "TILE": (64, 32, 128),
    "TILE_K": (16, 8, 32),
}
"""Threads of a block: one for each result, and those that reduce together; blocks that share one
result; results of a block of a contraction along each side, and terms that it reads at once."""
_TUNE_WHERE = {"TILE": "TILE * TILE_K <= 2048"}
"""Two padded tiles of float64 in the 48 KiB that every kernel has."""
_HEADERS = {
    "griddepcontrol": "kopt/griddepcontrol.cuh",
    "_streaming": "kopt/global_access.cuh",
    "mbarrier": "kopt/cluster_exchange.cuh",
    "e2m1": "kopt/nvfp4_utils.cuh",
    "sf_128x4": "kopt/nvfp4_utils.cuh",
}
"""Headers of kopt by a word of the code that needs them."""
_AXIS = re.compile(r"\bKOPT_([A-Z][A-Z0-9]*)\b")


def emit_candidate(problem: Problem, graph: Graph, schedule: Schedule = PLAIN) -> str:
    """Return the text of a candidate that computes `graph`.

    Args:
        problem: The graph's inputs and outputs are its tensors, sizes of the graph its axes.
        graph: Of core ATen operators.
        schedule: How a kernel that makes rows is written.

    Raises:
        UnsupportedOperator: An operator or a dtype has no lowering.
        ToolError: There would be more launches than a candidate may have.
    """
    program = lowered(problem, graph, schedule)
    kernels = program.launched()
    if len(kernels) > MAX_LAUNCHES:
        raise ToolError(
            f"{problem.name} needs {len(kernels)} launches; a candidate has at most {MAX_LAUNCHES}:"
            " import a part of the function, or fewer layers"
        )
    slots = arranged(kernels, program.sizes)
    code = "\n\n".join(_kernel_text(kernel) for kernel in kernels)
    functions = device_functions(code, {**ROW_FUNCTIONS, **FOLD_FUNCTIONS})
    text = f"{functions}\n{code}"
    parts = (_header(problem, program, slots, text), _includes(text), text)
    return "\n".join(part for part in parts if part) + "\n"


def _header(
    problem: Problem, program: LoweredProgram, slots: dict[Buffer, ScratchSlot], code: str
) -> str:
    plan = [_launch(kernel, slots) for kernel in program.launched()]
    values = {**_TUNE, **program.tune}
    names = _used_tune(values, code, plan)
    axes = sorted(set(_AXIS.findall(code)), key=list(problem.axes).index)
    applied = [name for name in TECHNIQUES if name in program.schedule.techniques]
    families = list(dict.fromkeys(TECHNIQUES[name].family for name in applied)) or ["other"]
    told = f"; {', '.join(applied)}" if applied else ""
    lines = [
        "/* kopt: 1",
        f"family: [{', '.join(families)}]",
        f'note: "generated: {program.note}{told}"',
    ]
    if names:
        shown = ", ".join(f"{name}: [{', '.join(map(str, values[name]))}]" for name in names)
        lines.append(f"tune: {{{shown}}}")
    limits = [where for name, where in _TUNE_WHERE.items() if name in names] + program.conditions
    if limits:
        shown = ", ".join(f'"{limit}"' for limit in limits)
        lines.append(f"tune_where: [{shown}]")
    if axes:
        lines.append(f"specialize: [{', '.join(axes)}]")
    lines.append(f"flags: {{fast_math: {str(program.schedule.is_fast).lower()}}}")
    used = list({slot.name: slot for slot in slots.values()}.values())
    if used:
        lines.append("scratch:")
        lines += [f'  {one.name}: {{dtype: {one.dtype}, shape: "{one.shape}"}}' for one in used]
    return "\n".join([*lines, "launch:", *plan, "*/"])


def _used_tune(values: Mapping[str, object], code: str, plan: list[str]) -> list[str]:
    words = set(re.findall(r"\w+", code)) | set(re.findall(r"\w+", "\n".join(plan)))
    return [name for name in values if name in words]


def _launch(kernel: Kernel, slots: dict[Buffer, ScratchSlot]) -> str:
    names = [
        slots[use.buffer].name if use.buffer in slots else use.buffer.label for use in kernel.uses
    ]
    names += [text if text.isidentifier() else f'{{int32: "{text}"}}' for _, text in kernel.numbers]
    parts = [f"kernel: {kernel.name}", f'grid: "{kernel.grid}"', f"block: {kernel.block}"]
    if kernel.smem != "0":
        parts.append(f'smem: "{kernel.smem}"')
    parts += kernel.options
    parts.append(f"args: [{', '.join(names)}]")
    return f"  - {{{', '.join(parts)}}}"


def _includes(code: str) -> str:
    wanted = ["cmath", "limits", "type_traits"]
    wanted += ["cstring", "initializer_list"] * ("op::pack_length" in code)
    wanted += ["cuda_bf16.h"] * ("bfloat16" in code) + ["cuda_fp16.h"] * ("half" in code)
    wanted += ["cuda_fp8.h"] * ("__nv_fp8" in code)
    own = {name for word, name in _HEADERS.items() if word in code}
    return "\n" + "\n".join(f"#include <{name}>" for name in sorted({*wanted, *own})) + "\n"


def _kernel_text(kernel: Kernel) -> str:
    numbers = [f"int {name}" for name, _ in kernel.numbers]
    parameters = ", ".join([*map(_parameter, kernel.uses), *numbers])
    head = f'extern "C" __global__ void {kernel.bounds}{kernel.name}({parameters}) {{'
    comment = "\n".join(f"// {line}" for line in kernel.comment.splitlines())
    return "\n".join(part for part in (comment, head, kernel.text, "}") if part)


def _parameter(use: Use) -> str:
    if use.buffer.kind == "scalar":
        return f"{STORED[use.buffer.dtype]} {use.parameter}"
    const = "" if use.is_written else "const "
    return f"{const}{STORED[use.buffer.dtype]}* __restrict__ {use.parameter}"
