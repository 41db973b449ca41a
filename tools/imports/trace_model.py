"""A Definition at one Workload as a Python file: its reference behind Model and get_inputs().

The values of axes stand as assignments, which the import may make smaller; what is computed from
them stands in a function.
"""

import ast
import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError

from .trace_records import ConstAxis, Definition, ExprAxis, ScalarInput, TraceTensor, TraceWorkload

_AXIS = "axis_"
_FLOATS = frozenset(("float64", "float32", "float16", "bfloat16"))
_NARROW = frozenset(("float8_e4m3fn", "float8_e5m2"))
_RANGES = {"int8": (-128, 128), "int16": (-1024, 1024), "int32": (-1024, 1024)}
_RANGES["int64"] = (-1024, 1024)
"""Random integers of the format, the upper bound excluded."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_SIGNS = (ast.UAdd, ast.USub)


@dataclass(frozen=True)
class TraceTask:
    """What a file is written of."""

    definition: Definition
    workload: TraceWorkload
    stored: Mapping[str, npt.NDArray[np.generic]]
    """Tensors that the workload takes from files, by input."""


def trace_model(task: TraceTask) -> str:
    """Return the Python file of a Definition at a Workload.

    Raises:
        ToolError: It says something that no such file can hold.
    """
    _refuse_names(task.definition)
    return "\n".join([task.definition.reference.rstrip(), "", *_lines(task)]) + "\n"


def _refuse_names(definition: Definition) -> None:
    if set(definition.inputs) & set(definition.outputs):
        raise ToolError("an input and an output of its Definition have one name")
    for name in (*definition.axes, *definition.inputs):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ToolError(f"{name[:60]!r} is no name that Python takes")
    if not definition.inputs:
        raise ToolError("its Definition has no input")


def _lines(task: TraceTask) -> Iterator[str]:
    definition = task.definition
    tensors = [name for name, one in definition.inputs.items() if one.shape is not None]
    numbers = {
        name: _number(task, name) for name, one in definition.inputs.items() if one.shape is None
    }
    called = ", ".join(numbers.get(name, name) for name in definition.inputs)
    yield "# What follows was written by kopt import."
    yield "import torch as _torch"
    yield ""
    for name, axis in definition.axes.items():
        if not isinstance(axis, ExprAxis):
            value = axis.value if isinstance(axis, ConstAxis) else _value(task, name)
            yield f"{_AXIS}{name} = {value}"
    yield ""
    yield "class Model(_torch.nn.Module):"
    yield f"    def forward(self, {', '.join(tensors)}):"
    yield f"        return run({called})"
    yield ""
    yield "def _draw():"
    for name, axis in definition.axes.items():
        if isinstance(axis, ExprAxis):
            yield f"    {_AXIS}{name} = int({axis_expression(axis.expression, definition)})"
    yield from _inputs(task, tensors, numbers)
    yield ""
    yield "def get_inputs():"
    yield "    return _draw()"


def _value(task: TraceTask, axis: str) -> int:
    if axis not in task.workload.axes:
        raise ToolError(f"its Workload {task.workload.uuid[:12]} has no value of the axis {axis}")
    return task.workload.axes[axis]


def _number(task: TraceTask, name: str) -> str:
    given = task.workload.inputs.get(name)
    if not isinstance(given, ScalarInput):
        raise ToolError(f"its Workload {task.workload.uuid[:12]} has no value of the input {name}")
    return repr(given.value)


def axis_expression(text: str, definition: Definition) -> str:
    """Return an expression over axes in the names of the file.

    Raises:
        ToolError: It is no sum, product, quotient or power of axes and numbers.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"the axis expression {text[:80]!r} is none") from error
    for node in ast.walk(tree):
        allowed = (
            isinstance(node, ast.Expression | ast.Load | ast.operator | ast.unaryop)
            or (isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS))
            or (isinstance(node, ast.UnaryOp) and isinstance(node.op, _SIGNS))
            or (isinstance(node, ast.Constant) and type(node.value) is int)
            or (isinstance(node, ast.Name) and node.id in definition.axes)
        )
        if not allowed:
            raise ToolError(f"the axis expression {text[:80]!r} holds more than axes and numbers")
        if isinstance(node, ast.Name):
            node.id = f"{_AXIS}{node.id}"
    return ast.unparse(tree)


def _inputs(task: TraceTask, tensors: list[str], numbers: Mapping[str, str]) -> Iterator[str]:
    entry = task.definition.custom_inputs_entrypoint
    if entry is not None:
        if not entry.isidentifier():
            raise ToolError(f"{entry[:60]!r} is no function that makes inputs")
        axes = ", ".join(f"{name!r}: {_AXIS}{name}" for name in task.definition.axes)
        scalars = "".join(f", {name!r}: {value}" for name, value in numbers.items())
        yield f'    made = {entry}({{{axes}{scalars}}}, _torch.device("cpu"))'
        yield f"    return [{', '.join(f'made[{name!r}]' for name in tensors)}]"
        return
    yield "    return ["
    for name in tensors:
        yield f"        {_drawn(task, name, task.definition.inputs[name])},"
    yield "    ]"


def _drawn(task: TraceTask, name: str, tensor: TraceTensor) -> str:
    sizes = [one if one.isdecimal() else f"{_AXIS}{one}" for one in tensor.shape or ()]
    for one in tensor.shape or ():
        if not one.isdecimal() and one not in task.definition.axes:
            raise ToolError(f"the shape of {name} names {one[:60]!r}, which is no axis")
    shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
    if name in task.stored:
        return _like(name, task.stored[name], shape, tensor.dtype)
    if tensor.dtype in _FLOATS:
        drawn = f"_torch.randn({shape}).to(_torch.{tensor.dtype})"
        is_share = task.definition.op_type == "sampling" and name == "probs"
        return f"_torch.softmax({drawn}, -1)" if is_share else drawn
    if tensor.dtype in _NARROW:
        return f"_torch.randn({shape}).clamp(-2, 2).to(_torch.{tensor.dtype})"
    if tensor.dtype == "bool":
        return f"_torch.rand({shape}) < 0.5"
    if tensor.dtype in _RANGES:
        low, high = _RANGES[tensor.dtype]
        return f"_torch.randint({low}, {high}, {shape}, dtype=_torch.{tensor.dtype})"
    raise ToolError(f"its input {name} has the dtype {tensor.dtype[:40]}, which kopt cannot draw")


def _like(name: str, array: npt.NDArray[np.generic], shape: str, dtype: str) -> str:
    """Return an expression that draws values like those of a file.

    Raises:
        ToolError: Positions that only grow, where each value has its meaning, are not drawn.
    """
    values = array.astype(np.float64)
    if dtype == "bool":
        return f"_torch.rand({shape}) < {float(values.mean()) if values.size else 0.5!r}"
    if dtype in _RANGES:
        if values.ndim == 1 and values.size > 1 and (np.diff(values) >= 0).all():
            raise ToolError(
                f"its input {name} comes from a file and only grows, as positions in other inputs"
                " do: random values would be no input"
            )
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        return f"_torch.randint({low}, {high + 1}, {shape}, dtype=_torch.{dtype})"
    if dtype not in _FLOATS | _NARROW:
        raise ToolError(f"its input {name} has the dtype {dtype[:40]}, which kopt cannot draw")
    if not values.size or not np.isfinite(values).all():
        raise ToolError(f"its input {name} comes from a file whose values are not all finite")
    if values.min() >= 0.0:
        least, width = float(values.min()), float(values.max() - values.min())
        drawn = f"_torch.rand({shape}) * {width!r} + {least!r}"
    else:
        drawn = f"_torch.randn({shape}) * {float(values.std())!r} + {float(values.mean())!r}"
    return f"({drawn}).to(_torch.{dtype})"
