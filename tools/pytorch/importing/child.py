"""The child that runs the user's Python: `python -m kopt.tools.pytorch.importing.child FOLDER`.

FOLDER has request.json. It leaves answer.json and the .npy files of constants, and nothing else is
read of it: the parent takes records and arrays, no code.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kopt.config.counted import few_of
from kopt.config.errors import KoptError, ToolError
from kopt.tools.pytorch.drawing import stored_name
from kopt.tools.pytorch.graph import FILE_NAME, Graph
from kopt.tools.pytorch.torch_library import load_torch

from .exported import ANSWER, PROGRESS, REQUEST, ChildAnswer, ChildFailure, Exported, step
from .exporting import ExportedModule, export_module
from .fake_run import FakeRun, fake_run
from .judged_precision import judged_precision
from .known_values import known_values
from .longer_batch import told_apart
from .measuring import measure
from .probing import Probe
from .problem_making import ProblemText, make_problem
from .request import ExportRequest
from .shrinking import chosen, same_function, shrink
from .sizes_as_axes import OFFICIAL, SMALL, Measured, with_axes
from .user_source import SizedFunction, load_function

DRAWS = 3
"""Calls of the user's code whose values are measured."""


def main(folder: Path) -> None:
    """Answer the request in `folder`."""
    request = ExportRequest.model_validate_json((folder / REQUEST).read_bytes())

    def tell(text: str) -> None:
        (folder / PROGRESS).write_text(text, "utf-8")

    try:
        answer = ChildAnswer(exported=export(request, folder, tell))
    except KoptError as error:
        answer = ChildAnswer(failure=ChildFailure.of(error))
    (folder / ANSWER).write_text(answer.model_dump_json(), "utf-8")


def export(
    request: ExportRequest,
    folder: Path,
    tell: Callable[[str], None],
    function: SizedFunction | None = None,
) -> Exported:
    """Return the function that `request` names as a graph; constants are written into `folder`.

    Args:
        request: Where there is no `function`, names one.
        folder: For constants.
        tell: Is given a line of progress.
        function: The function itself.

    Raises:
        ToolError: It cannot be imported.
        SetupError: torch is missing.
    """
    load_torch()
    tell(step(1, "running it on fake tensors"))
    found: SizedFunction = function or _guarded(request, lambda: load_function(request))
    return _exported(request, folder, tell, found)


def _exported(
    request: ExportRequest, folder: Path, tell: Callable[[str], None], function: SizedFunction
) -> Exported:
    official = _guarded(request, lambda: fake_run(function.build, {}))
    tell(step(2, "looking for a small shape"))
    if request.small is None:
        values = shrink(function, official)
    else:
        values = chosen(function, request.small)
        same_function(function, official, values)
    tell(step(3, "exporting it at the small shape"))
    small, draws = _measured(request, function, values)
    measured = [Measured(workload=SMALL if values else OFFICIAL, graph=small.graph)]
    large = small
    if values:
        tell(step(4, "exporting it at its own shape"))
        large = _exported_fake(request, function, small.changed)
        refuse_other(small.graph, large.graph)
        measured.append(Measured(workload=OFFICIAL, graph=large.graph))
    names = [one.name for one in small.graph.inputs if one.drawing.kind == "stored"]
    files = {stored_name(one, SMALL if values else ""): draws[one] for one in names}
    if names and values:
        official = _official_values(request, function, large, names)
        files |= {stored_name(one, OFFICIAL): official[one] for one in names}
    for file, array in files.items():
        np.save(folder / file, array, allow_pickle=False)
    batch = _batch(fake_run(function.build, values))
    sized = with_axes(measured, batch)
    if sized.batch is None:
        sized = told_apart(partial(_fake, request, function, values), measured, batch) or sized
    tell(step(5, "finding out by what it can be judged"))
    (folder / FILE_NAME).write_text(sized.graph.model_dump_json(), "utf-8")
    text = ProblemText("function", "", request.precision)
    problem = make_problem(sized, text, folder, sized.batch)
    judged = judged_precision(Probe(problem, folder, request.precision), sized.graph)
    return Exported(
        sized=sized,
        basis=judged.basis,
        precision=judged.precision,
        parameters=sum(one.numel() for one in large.module.parameters()),
        warnings=(*judged.warnings, *small.warnings, *_warnings(sized.graph)),
        call=large.call if large.call == small.call else None,
        unused=dict(small.unused),
        changed={name: (value, function.integers[name]) for name, value in values.items()},
    )


def _warnings(graph: Graph) -> tuple[str, ...]:
    constant = [one.path for one in graph.inputs if one.drawing.was_constant]
    if not constant:
        return ()
    return (
        f"{few_of(constant, 4)}: constant at initialisation, drawn with a spread so that"
        " no kernel may leave them out",
    )


def _guarded(request: ExportRequest, work: Any) -> Any:
    """Return what the user's code gives; what it raises is told with its line."""
    try:
        return work()
    except KoptError:
        raise
    except Exception as error:  # the user's own code: whatever it raises is theirs to mend
        trace, line = error.__traceback__, ""
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if "/torch/" not in file and "kopt" not in trace.tb_frame.f_globals.get("__name__", ""):
                line = f"{Path(file).name}:{trace.tb_lineno}: "
            trace = trace.tb_next
        said = (str(error).strip().splitlines() or [""])[0]
        raise ToolError(f"{line}{request.source}: {type(error).__name__}: {said}") from error


def _files(request: ExportRequest) -> list[Path]:
    if request.source.endswith(".py"):
        return [Path(request.source)]
    module = sys.modules.get(request.source.partition(":")[0])
    file = getattr(module, "__file__", None)
    return [Path(file)] if file else []


def _measured(
    request: ExportRequest, function: SizedFunction, values: dict[str, int]
) -> tuple[ExportedModule, dict[str, Any]]:
    """Return the small graph with how its inputs are drawn, and one draw of each."""
    torch = load_torch()
    made: list[dict[str, Any]] = []
    exported: ExportedModule | None = None
    for seed in range(DRAWS):
        torch.manual_seed(seed)
        module, inputs = _guarded(request, lambda: function.build(values))
        if exported is None:
            exported = export_module(module, inputs, _files(request))
        tensors = _tensors(exported, module, inputs)
        made.append({name: _as_array(one) for name, one in tensors.items()})
    assert exported is not None
    measured = tuple(
        one.model_copy(update={"drawing": measure(one, [draw[one.name] for draw in made])})
        for one in exported.graph.inputs
    )
    graph = exported.graph.model_copy(update={"inputs": measured})
    return replace(exported, graph=graph), made[0]


def _tensors(exported: ExportedModule, module: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return every input of the graph."""
    torch = load_torch()
    flat = [one for one in torch.utils._pytree.tree_leaves(inputs) if isinstance(one, torch.Tensor)]
    state = {
        **dict(exported.constants),
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers()),
    }
    return {
        one.name: flat[exported.places[one.name]]
        if one.kind == "input"
        else state[exported.targets[one.name]]
        for one in exported.graph.inputs
    }


def _as_array(tensor: Any) -> Any:
    """Return a tensor as an array: floats in float64."""
    value = tensor.detach()
    return (value.double() if value.is_floating_point() else value).numpy()


def _exported_fake(
    request: ExportRequest, function: SizedFunction, changed: frozenset[str]
) -> ExportedModule:
    """Return the official graph, exported without its memory."""
    module, inputs = _fake(request, function, {})
    return export_module(module, inputs, _files(request), changed=changed)


def _fake(
    request: ExportRequest, function: SizedFunction, values: dict[str, int]
) -> tuple[Any, tuple[Any, ...]]:
    """Return the module and its inputs as fake tensors, which have no memory."""
    torch = load_torch()
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode

    with torch.no_grad(), fake(allow_non_fake_inputs=True), known_values():
        made: tuple[Any, tuple[Any, ...]] = _guarded(request, lambda: function.build(values))
    return made


def _official_values(
    request: ExportRequest, function: SizedFunction, large: ExportedModule, names: list[str]
) -> dict[str, Any]:
    """Return what is part of the function at its own shape.

    Tensors that forward() makes of numbers are known from the export on fake tensors; for others,
    tables above all, the module and its inputs are made after all.
    """
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor").FakeTensor
    made = {name: large.constants.get(large.targets[name]) for name in names}
    if all(one is not None and not isinstance(one, fake) for one in made.values()):
        return {name: _as_array(one) for name, one in made.items()}
    module, inputs = _guarded(request, lambda: function.build({}))
    exported = export_module(module, inputs, _files(request), changed=large.changed)
    values = _tensors(exported, module, inputs)
    return {name: _as_array(values[name]) for name in names}


def _batch(run: FakeRun) -> int | None:
    return run.inputs[0][0] if run.inputs and run.inputs[0] else None


def refuse_other(small: Graph, large: Graph) -> None:
    """Refuse two graphs that are not one function.

    Raises:
        ToolError: Their operators differ.
    """
    ours, theirs = ([node.op for node in graph.nodes] for graph in (small, large))
    if ours != theirs:
        raise ToolError(
            "at the small shape torch.export gives other operators than at the official one:"
            " choose its sizes by --small NAME=VALUE"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
