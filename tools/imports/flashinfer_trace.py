"""FlashInfer-Trace: definitions/**.json and workloads/**.jsonl of a data set, read as tasks.

A task is a Definition at the largest of its Workloads that can be read.
"""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from kopt.config.errors import ToolError

from .foreign_task import ForeignTask, problem_name
from .reading import json_lines, read_text
from .safetensors_file import stored_tensor
from .trace_model import TraceTask, trace_model
from .trace_records import Definition, StoredInput, TraceWorkload, WorkloadLine


def trace_tasks(root: Path) -> Iterator[ForeignTask]:
    """Yield a task for each Definition of the data set in `root`, in the order of their files.

    Raises:
        ToolError: `root` has no Definition.
    """
    files = sorted(root.glob("definitions/**/*.json"))
    if not files:
        raise ToolError(f"{root} has no definitions/**/*.json: name a data set of FlashInfer-Trace")
    workloads = _workloads(root)
    for path in files:
        yield definition_task(path, root, lambda name: workloads.get(name, ()))


def definition_task(
    path: Path, root: Path, workloads: Callable[[str], tuple[TraceWorkload, ...]]
) -> ForeignTask:
    """Return the task of one Definition's file; what is wrong with it is its fault."""
    origin = path.relative_to(root).as_posix()
    text, fault = read_text(path)
    definition: Definition | None = None
    if not fault:
        try:
            definition = Definition.model_validate_json(text)
        except ValidationError as error:
            fault = f"{path.name} is no Definition: {first_mistake(error)}"
    if definition is None:
        name = path.parent.name if path.stem == "definition" else path.stem
        return ForeignTask(problem_name(name), "unread", name, origin, fault=fault)
    group = problem_name(definition.op_type) if definition.op_type else "all"
    name = definition.name
    try:
        model = _model(definition, workloads(name), root)
    except ToolError as error:
        return ForeignTask(problem_name(name), group, name, origin, fault=str(error))
    return ForeignTask(problem_name(name), group, name, origin, model)


def _model(definition: Definition, workloads: tuple[TraceWorkload, ...], root: Path) -> str:
    if not workloads and definition.variable_axes:
        names = ", ".join(definition.variable_axes)
        raise ToolError(f"no Workload says how large it is ({names})")
    if not workloads:
        workloads = (TraceWorkload(axes={}),)
    largest = max(workloads, key=lambda one: prod(one.axes.values()))
    return trace_model(TraceTask(definition, largest, _stored(definition, largest, root)))


def _stored(
    definition: Definition, workload: TraceWorkload, root: Path
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the tensors that a workload takes from files of the data set."""
    found: dict[str, npt.NDArray[np.generic]] = {}
    for name, given in workload.inputs.items():
        if not isinstance(given, StoredInput) or name not in definition.inputs:
            continue
        path = (root / given.path).resolve()
        if not path.is_relative_to(root):
            raise ToolError(f"its input {name} lies outside of the data set: {given.path[:80]}")
        found[name] = stored_tensor(path, given.tensor_key)
    return found


def _workloads(root: Path) -> Mapping[str, tuple[TraceWorkload, ...]]:
    """Return the workloads of each Definition; a line that is none is left out."""
    found: dict[str, list[TraceWorkload]] = {}
    for path in sorted(root.glob("workloads/**/*.jsonl")):
        text, _ = read_text(path)
        for document in json_lines(text):
            try:
                read = WorkloadLine.model_validate(document)
            except ValidationError:
                continue
            found.setdefault(read.definition, []).append(read.workload)
    return {name: tuple(several) for name, several in found.items()}


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake of a document with its place."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'it'}: {first['msg']}"
