"""Definitions of FlashInfer-Trace: one for each set of axes that is constant.

The rows are a variable axis where no other axis follows from them; else all axes are constant and
each workload has a Definition of its own, for the format reads variable axes from inputs alone.
"""

import re
from dataclasses import dataclass
from typing import Any

from kopt.config.errors import ToolError
from kopt.kernels.expressions import evaluate_expression, expression_names
from kopt.kernels.problem import TensorSpec, Workload

from .signature import Signature, storage_texts

REFERENCE_FILE = "torch_reference.py"
_DTYPES = frozenset(
    [
        *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
        *("int64", "int32", "int16", "int8", "bool"),
    ]
)
# What a problem's file says to the type checker and the linter of its own repository.
_CHECKERS_NOTE = re.compile(r"^# Text for exports.*\n# pyright:.*\n\n?|  # noqa:.*$", re.MULTILINE)


@dataclass(frozen=True)
class TraceDefinition:
    """One Definition with the workloads that it serves."""

    document: dict[str, Any]
    workloads: tuple[Workload, ...]
    variable: str | None
    """The axis that is not constant."""

    @property
    def name(self) -> str:
        """The name by which Solutions and Workloads refer to it."""
        return str(self.document["name"])


def trace_definitions(signature: Signature) -> tuple[TraceDefinition, ...]:
    """Return the Definitions of every workload of the kernel.

    Raises:
        ToolError: The problem has no PyTorch reference, or a dtype that the format lacks.
    """
    reference = _reference(signature)
    variable = _variable_axis(signature)
    groups: dict[tuple[tuple[str, int], ...], list[Workload]] = {}
    for workload in signature.exported.domain:
        constant = tuple((a, v) for a, v in workload.axes.items() if a != variable)
        groups.setdefault(constant, []).append(workload)
    return tuple(
        TraceDefinition(
            _document(signature, workloads[0], variable, reference), tuple(workloads), variable
        )
        for workloads in groups.values()
    )


def output_name(tensor: TensorSpec) -> str:
    """Return what an output is called: names of inputs and outputs may not overlap."""
    return f"{tensor.name}_out" if tensor.role == "inout" else tensor.name


def trace_dtype(dtype: str) -> str:
    """Return the format's name of a dtype; unsigned bytes are declared as signed ones.

    Raises:
        ToolError: The format has none.
    """
    if dtype == "uint8":
        return "int8"
    if dtype not in _DTYPES:
        raise ToolError(
            f"FlashInfer-Trace has no dtype {dtype}: export this kernel in another form"
        )
    return dtype


def _reference(signature: Signature) -> str:
    path = signature.exported.problem.folder / REFERENCE_FILE
    if not path.is_file():
        raise ToolError(
            f"a FlashInfer-Trace Definition holds its reference in PyTorch, and {path} is missing:"
            " write run(inputs in call order), which returns the outputs in call order"
        )
    return _CHECKERS_NOTE.sub("", path.read_text("utf-8"))


def _variable_axis(signature: Signature) -> str | None:
    """Return the row axis, unless an axis of a tensor is computed from it."""
    problem = signature.exported.problem
    rows = problem.row_axis
    if rows not in signature.axes:
        return None
    for tensor in problem.tensors:
        for text in storage_texts(tensor):
            names = expression_names(signature.computed.get(text, text))
            if text != rows and rows in names:
                return None
    return rows


def _document(
    signature: Signature, workload: Workload, variable: str | None, reference: str
) -> dict[str, Any]:
    problem = signature.exported.problem
    constant = {name: value for name, value in workload.axes.items() if name != variable}
    shown = [f"{a.lower()}{v}" for a, v in constant.items() if problem.axes[a] is None]
    axes: dict[str, Any] = {}
    inputs = {t.name: _tensor(signature, t, workload, axes) for t in signature.inputs}
    outputs = {
        output_name(t): _tensor(signature, t, workload, axes)
        for t in problem.tensors
        if t.role != "in"
    }
    if variable is not None:
        axes[variable] = {"type": "var"}
    scalars = ", ".join(f"{scalar.name} = {scalar.value!r}" for scalar in problem.scalars)
    return {
        "name": "_".join([problem.name, *shown]),
        "op_type": problem.op_type,
        "description": " ".join(problem.description.split()) + (f" {scalars}." if scalars else ""),
        "tags": [f"tolerance:{problem.tolerance}"],
        "axes": axes,
        "inputs": inputs,
        "outputs": outputs,
        "reference": reference,
    }


def _tensor(
    signature: Signature, tensor: TensorSpec, workload: Workload, axes: dict[str, Any]
) -> dict[str, Any]:
    """Return a tensor's declaration, and add the axes that its shape names to `axes`."""
    shape: list[str] = []
    for place, text in enumerate(storage_texts(tensor)):
        is_axis = text in signature.exported.problem.axes
        name = text if is_axis else f"{tensor.name}_elements{place}"
        axes[name] = {"type": "const", "value": evaluate_expression(text, workload.axes)}
        shape.append(name)
    result: dict[str, Any] = {"shape": shape, "dtype": trace_dtype(tensor.dtype)}
    if tensor.description:
        result["description"] = " ".join(tensor.description.split())
    return result
