"""The problem of an imported graph, as a record and as the text of its problem.yaml."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kopt.kernels.precision import Precision
from kopt.kernels.problem import Baseline, Problem, TensorSpec, Use, Workload
from kopt.tools.pytorch.contraction_work import flops_of
from kopt.tools.pytorch.graph import AxisSize, ValueType

from .sizes_as_axes import OFFICIAL, SizedGraph

ENTRIES = {"torch_eager": "eager", "torch_compile": "compiled", "torch_compile_max": "compiled_max"}
"""Functions of the generated baseline.py, by the baseline's name."""


@dataclass(frozen=True)
class ProblemText:
    """What a problem says beside its graph."""

    name: str
    description: str
    precision: Precision


def make_problem(
    sized: SizedGraph, text: ProblemText, folder: Path, row_axis: str | None
) -> Problem:
    """Return the problem of a graph; `row_axis` is one of its axes, or None."""
    constants: dict[str, str | None] = {}
    tensors: list[TensorSpec] = []
    for given in sized.graph.inputs:
        shape = _shape(given.type, sized, constants)
        static = given.kind != "input"
        spec = TensorSpec(
            name=given.name, role="in", dtype=given.type.dtype, shape=shape, static=static
        )
        tensors.append(spec.model_copy(update={"description": _described(given.path)}))
    for output in sized.graph.outputs:
        kind = sized.graph.type_of(output.value)
        shape = _shape(kind, sized, constants)
        tensors.append(TensorSpec(name=output.name, role="out", dtype=kind.dtype, shape=shape))
    axes = {**sized.axes, **constants}
    numbers = {name: int(expression or 0) for name, expression in constants.items()}
    return Problem(
        name=text.name,
        op_type="pytorch",
        description=text.description,
        axes=axes,
        tensors=tuple(tensors),
        row_axis=row_axis,
        workloads=tuple(
            Workload(
                name=name,
                axes={**values, **numbers},
                use=_use(name, len(sized.workloads)),
            )
            for name, values in sized.workloads.items()
        ),
        precision=text.precision,
        matrix_flops=flops_of(sized.graph),
        baselines=tuple(
            Baseline(name=name, entry=entry, layout="row_major") for name, entry in ENTRIES.items()
        ),
        folder=folder,
    )


def _use(workload: str, count: int) -> Use:
    """Return what a workload is there for: of two the small one is checked, the official timed."""
    if count == 1:
        return "both"
    return "time" if workload == OFFICIAL else "check"


def _described(path: str) -> str:
    return f"{path} of the state_dict" if path else ""


def _shape(kind: ValueType, sized: SizedGraph, constants: dict[str, str | None]) -> tuple[str, ...]:
    """Return a shape as names of axes; what is the same everywhere is an axis of that value."""
    names: list[str] = []
    for size in kind.shape:
        if isinstance(size, AxisSize):
            names.append(size.axis)
            continue
        name = f"D{size}"
        while name in sized.axes:
            name += "C"
        constants[name] = str(size)
        names.append(name)
    return tuple(names)


def problem_yaml(problem: Problem) -> str:
    """Return the text of problem.yaml."""
    return "\n".join(_lines(problem)) + "\n"


def _lines(problem: Problem) -> Iterator[str]:
    yield f"name: {problem.name}"
    yield f"op_type: {problem.op_type}"
    yield f"description: {json.dumps(problem.description)}"
    yield "axes:" if problem.axes else "axes: {}"
    for name, expression in problem.axes.items():
        yield f"  {name}: " + ("{var: true}" if expression is None else f'{{expr: "{expression}"}}')
    yield "tensors:"
    for tensor in problem.tensors:
        more = ", static: true" if tensor.static else ""
        if tensor.description:
            more += f", description: {json.dumps(tensor.description)}"
        shape = ", ".join(tensor.shape)
        what = f"role: {tensor.role}, dtype: {tensor.dtype}, shape: [{shape}]{more}"
        yield f"  {tensor.name}: {{{what}}}"
    if problem.row_axis is not None:
        yield f"row_axis: {problem.row_axis}"
    if problem.matrix_flops != "0":
        yield f'matrix_flops: "{problem.matrix_flops}"'
    if problem.precision != "ieee":
        yield f"precision: {problem.precision}"
    yield "workloads:"
    for workload in problem.workloads:
        given = ", ".join(f"{name}: {workload.axes[name]}" for name in problem.variable_axes)
        use = f", use: {workload.use}" if workload.use != "both" else ""
        yield f"  {workload.name}: {{axes: {{{given}}}{use}}}"
    if problem.baselines:
        yield "baselines:"
    for baseline in problem.baselines:
        yield f"  - {{name: {baseline.name}, entry: {baseline.entry}, layout: {baseline.layout}}}"
