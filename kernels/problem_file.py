"""problem.yaml from text to `Problem`: every field checked, every mistake named with its line.

`problem_loader.py` finds the folders; the oracle beside the file is `oracle.py`'s.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from kopt.config.near_matches import near_matches

from .dtypes import DTYPE_SIZE_BYTES
from .expressions import ExpressionError, evaluate_expression
from .problem import Baseline, Layout, Problem, ScalarSpec, TensorSpec, Workload
from .strict_yaml import Scalar, load_yaml
from .yaml_fields import Fields, Findings, described, integer_of, keys_of, text_of

MAX_AXIS = 2**31 - 1
MAX_RANK = 5

_KEYS = tuple(name for name in Problem.model_fields if name != "folder")
_REQUIRED = ("name", "op_type", "description", "axes", "tensors", "row_axis", "workloads")
_PROBLEM_NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")
_AXIS_NAME = re.compile(r"[A-Z][A-Z0-9]{0,15}")
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
_ARGUMENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def read_problem(text: str, folder: Path, findings: Findings) -> Problem:
    """Return the problem that `text` describes; only meaningful if nothing was reported.

    Raises:
        YamlError: The text is not YAML or outside the strict subset.
    """
    fields = Fields(load_yaml(text), "problem", _KEYS, findings)
    fields.require(*_REQUIRED, "tolerance")
    axes = _axes(fields)
    problem = Problem(
        name=_named(fields, "name", _PROBLEM_NAME),
        op_type=fields.text("op_type"),
        description=fields.text("description"),
        axes=axes,
        tensors=_tensors(fields, axes),
        scalars=_scalars(fields),
        row_axis=fields.text("row_axis"),
        workloads=_workloads(fields, axes),
        tolerance=fields.choice("tolerance", ("nvfp4", "fp8", "bf16"), "bf16"),
        baselines=_baselines(fields),
        flops=fields.expression("flops", frozenset(axes)),
        folder=folder,
    )
    if problem.row_axis and problem.row_axis not in axes:
        known = near_matches(problem.row_axis, axes)
        fields.error("row_axis", f"unknown axis {problem.row_axis!r}; {known}")
    _check_argument_names(fields, problem)
    return problem


def _named(fields: Fields, key: str, form: re.Pattern[str]) -> str:
    name = fields.text(key)
    if name and not form.fullmatch(name):
        fields.error(key, f"{name[:80]!r} does not have the form {form.pattern}")
    return name


def _check_form(name: str, form: re.Pattern[str], what: str, line: int, findings: Findings) -> None:
    if not form.fullmatch(name):
        findings.error(f"{what}: {name[:80]!r} does not have the form {form.pattern}", line)


def _axes(fields: Fields) -> dict[str, str | None]:
    """Return the axes in file order; a computed axis may use those above it."""
    axes: dict[str, str | None] = {}
    for name, (node, line) in fields.entries("axes").items():
        what = f"axis {name}"
        _check_form(name, _AXIS_NAME, "axes", line, fields.findings)
        axis = Fields(node, what, ("var", "expr"), fields.findings)
        is_variable = axis.boolean("var", default=False)
        if is_variable == ("expr" in axis):
            message = f"{what}: expected either {{var: true}} or {{expr: ...}}"
            fields.findings.error(message, line)
        axes[name] = None if is_variable else axis.expression("expr", frozenset(axes))
    return axes


def _tensors(fields: Fields, axes: Mapping[str, str | None]) -> tuple[TensorSpec, ...]:
    return tuple(
        _tensor(name, Fields(node, f"tensor {name}", keys_of(TensorSpec), fields.findings), axes)
        for name, (node, _) in fields.entries("tensors").items()
    )


def _tensor(name: str, fields: Fields, axes: Mapping[str, str | None]) -> TensorSpec:
    fields.require("role", "dtype", "shape")
    shape: list[str] = []
    for node in fields.items("shape"):
        axis = text_of(node, f"{fields.what}: shape", fields.findings)
        if axis is not None and axis not in axes:
            fields.error("shape", f"unknown axis {axis[:80]!r}; {near_matches(axis, axes)}")
        elif axis is not None:
            shape.append(axis)
    if len(shape) > MAX_RANK:
        fields.error("shape", f"{len(shape)} axes, at most {MAX_RANK} are allowed")
    dtype = fields.choice("dtype", tuple(DTYPE_SIZE_BYTES), "uint8")
    layout: Layout = fields.choice("layout", ("row_major", "sf_128x4"), "row_major")
    if layout == "sf_128x4" and (len(shape) < 2 or DTYPE_SIZE_BYTES[dtype] != 1):
        fields.error("layout", "sf_128x4 is for scales of one byte with at least 2 axes")
    return TensorSpec(
        name=name,
        role=fields.choice("role", ("in", "out", "inout"), "in"),
        dtype=dtype,
        shape=tuple(shape),
        static=fields.boolean("static", default=False),
        layout=layout,
        description=fields.text("description"),
    )


def _scalars(fields: Fields) -> tuple[ScalarSpec, ...]:
    scalars: list[ScalarSpec] = []
    for name, (node, _) in fields.entries("scalars").items():
        entry = Fields(node, f"scalar {name}", ("dtype", "value"), fields.findings)
        entry.require("dtype", "value")
        value = _scalar_value(entry)
        scalars.append(
            ScalarSpec(
                name=name,
                dtype=entry.choice("dtype", ("float32", "int32", "int64"), "float32"),
                value=value,
            )
        )
    return tuple(scalars)


def _scalar_value(fields: Fields) -> int | float:
    node = fields.node("value")
    if node is None:
        return 0
    value = node.value if isinstance(node, Scalar) else None
    is_float = fields.choice("dtype", ("float32", "int32", "int64"), "float32") == "float32"
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and is_float and math.isfinite(value):
        return value
    wanted = "a finite number" if is_float else "an integer"
    fields.error("value", f"expected {wanted}, got {described(node)}")
    return 0


def _workloads(fields: Fields, axes: Mapping[str, str | None]) -> tuple[Workload, ...]:
    workloads: list[Workload] = []
    for name, (node, line) in fields.entries("workloads").items():
        entry = Fields(node, f"workload {name}", ("axes",), fields.findings)
        entry.require("axes")
        values = _workload_axes(entry, axes)
        variables = [axis for axis, expression in axes.items() if expression is None]
        wanted = "x".join(f"{axis.lower()}{values.get(axis)}" for axis in variables)
        if set(variables) <= set(values) and name != wanted:
            message = f"workload {name}: its axes ask for the name {wanted!r}"
            fields.findings.error(message, line)
        workloads.append(Workload(name=name, axes=values))
    if "workloads" in fields and not workloads:
        fields.error("workloads", "at least one workload is needed")
    return tuple(workloads)


def _workload_axes(fields: Fields, axes: Mapping[str, str | None]) -> dict[str, int]:
    given: dict[str, int] = {}
    for axis, (node, line) in fields.entries("axes").items():
        if axis not in axes or axes[axis] is not None:
            known = near_matches(axis, [name for name, text in axes.items() if text is None])
            message = f"{fields.what}: {axis[:80]!r} is no variable axis; {known}"
            fields.findings.error(message, line)
            continue
        value = integer_of(node, f"{fields.what}: {axis}", (1, MAX_AXIS), fields.findings)
        if value is not None:
            given[axis] = value
    missing = [axis for axis, text in axes.items() if text is None and axis not in given]
    if missing:
        if not fields.findings.diagnostics:
            fields.error("axes", f"no value for {', '.join(missing)}")
        return given
    return _computed_axes(fields, axes, given)


def _computed_axes(
    fields: Fields, axes: Mapping[str, str | None], given: Mapping[str, int]
) -> dict[str, int]:
    values: dict[str, int] = {}
    for axis, expression in axes.items():
        try:
            values[axis] = (
                given[axis] if expression is None else evaluate_expression(expression, values)
            )
        except ExpressionError as error:
            fields.error("axes", f"{axis} = {expression}: {error}")
            return dict(given)
        if not 1 <= values[axis] <= MAX_AXIS:
            fields.error(
                "axes", f"{axis} = {expression} is {values[axis]}; 1 to {MAX_AXIS} is allowed"
            )
    return values


def _baselines(fields: Fields) -> tuple[Baseline, ...]:
    return tuple(
        _baseline(Fields(node, f"baseline {index}", tuple(Baseline.model_fields), fields.findings))
        for index, node in enumerate(fields.items("baselines"), 1)
    )


def _baseline(fields: Fields) -> Baseline:
    fields.require("name", "entry", "layout")
    pdl: list[bool] = []
    for node in fields.items("pdl"):
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            pdl.append(node.value)
        else:
            fields.error("pdl", f"expected true or false, got {described(node)}")
    devices = (
        text_of(node, f"{fields.what}: devices", fields.findings)
        for node in fields.items("devices")
    )
    return Baseline(
        name=fields.text("name"),
        entry=_named(fields, "entry", _FUNCTION_NAME),
        layout=fields.text("layout"),
        pdl=tuple(pdl) or (False,),
        devices=tuple(device for device in devices if device is not None),
    )


def _check_argument_names(fields: Fields, problem: Problem) -> None:
    seen: set[str] = set()
    for what, names in (
        ("tensors", [tensor.name for tensor in problem.tensors]),
        ("scalars", [scalar.name for scalar in problem.scalars]),
    ):
        for name in names:
            if not _ARGUMENT_NAME.fullmatch(name):
                fields.error(what, f"{name[:80]!r} does not have the form {_ARGUMENT_NAME.pattern}")
            if name in seen:
                fields.error(what, f"the name {name!r} stands twice")
            seen.add(name)
    if not any(tensor.role != "in" for tensor in problem.tensors) and problem.tensors:
        fields.error("tensors", "none has the role out or inout: nothing would be computed")
