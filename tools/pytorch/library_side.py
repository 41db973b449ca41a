"""Baselines of an imported problem: the user's module on the GPU, eager or compiled.

Runs in a GPU worker, which is sandboxed and loads no candidate's host code. The module is made anew
from model.py and given kopt's tensors in the place of its parameters and buffers; of a part of a
network the graph itself is called.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from kopt.kernels.problem_loader import load_problem

from .graph import Graph, read_graph
from .graph_module import graph_module
from .importing.stage import MODEL_FILE, ImportResult
from .importing.user_source import load_subject
from .torch_library import load_torch

IMPORT_NAME = "import.json"


def bound_call(
    folder: Path, tensors: Mapping[str, Any], mode: str | None = None
) -> Callable[[], None]:
    """Return what runs the module once, on the tensors of one case, into the given outputs.

    Args:
        folder: The problem's.
        tensors: By the problem's names, on the GPU.
        mode: Of torch.compile; None: eager.

    Raises:
        ImportError: The user's module cannot be made from model.py alone.
    """
    torch = load_torch()
    graph = read_graph(folder)
    state: dict[str, Any] = {}
    if (folder / IMPORT_NAME).is_file():
        module, arguments = _module(folder, graph, tensors)
        state = {one.path: tensors[one.name] for one in graph.inputs if one.path}
    else:  # a part of a network, whose graph is all that there is of it
        module = graph_module(graph, _axes(folder, tensors), "cuda")
        arguments = tuple(tensors[one.name] for one in graph.inputs)
    outputs = [tensors[output.name] for output in graph.outputs]

    def forward(given: tuple[Any, ...], into: list[Any]) -> None:
        results = torch.utils._pytree.tree_leaves(torch.func.functional_call(module, state, given))
        made = [one for one in results if isinstance(one, torch.Tensor)]
        # Within what is compiled: there the copy is part of the kernel that makes the result.
        for output, result in zip(into, made, strict=True):
            output.copy_(result)

    call = forward if mode is None else torch.compile(forward, mode=mode)

    def run() -> None:
        with torch.no_grad():
            call(arguments, outputs)

    return run


def _axes(folder: Path, tensors: Mapping[str, Any]) -> dict[str, int]:
    """Return the axes of the workload whose shapes the tensors have.

    Raises:
        ImportError: There is none.
    """
    problem = load_problem(folder)
    for workload in problem.workloads:
        shapes = {t.name: tuple(workload.axes[one] for one in t.shape) for t in problem.tensors}
        if all(tuple(tensors[name].shape) == shape for name, shape in shapes.items()):
            return workload.axes
    raise ImportError(f"{problem.name} has no workload of these shapes")


def _module(folder: Path, graph: Graph, tensors: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the user's module on the GPU at the size of `tensors`, and its arguments."""
    kept = ImportResult.model_validate_json((folder / IMPORT_NAME).read_bytes())
    if not (folder / MODEL_FILE).is_file():
        raise ImportError(f"{folder} has no {MODEL_FILE}: it was imported from an installed module")
    request = kept.export.model_copy(
        update={"source": str(folder / MODEL_FILE), "import_path": (str(folder),)}
    )
    given = [tensors[one.name] for one in graph.inputs if one.kind == "input"]
    small = {name: values[0] for name, values in kept.changed.items()}
    for values in ({}, small):
        module, inputs = load_subject(request).build(values)
        arguments = arguments_of(inputs, given, set(kept.unused.values()))
        if arguments is not None:
            return module.to("cuda"), arguments
    raise ImportError("the module was imported at other shapes than this")


def arguments_of(
    inputs: tuple[Any, ...], tensors: Sequence[Any], unused: Set[int]
) -> tuple[Any, ...] | None:
    """Return the user's arguments with kopt's tensors in place of those that the function uses.

    Args:
        inputs: As the user's own code gives them: numbers, and lists of tensors, are among them.
        tensors: In the order of the graph's inputs.
        unused: Places, among the tensors of `inputs`, of those that the graph has not.

    Returns:
        None if their shapes are others.
    """
    torch = load_torch()
    leaves, structure = torch.utils._pytree.tree_flatten(inputs)
    places = [n for n, one in enumerate(leaves) if isinstance(one, torch.Tensor)]
    used = [place for number, place in enumerate(places) if number not in unused]
    if [leaves[place].shape for place in used] != [one.shape for one in tensors]:
        return None
    filled: dict[int, Any] = dict(zip(used, tensors, strict=True))
    device = tensors[0].device if tensors else "cuda"
    rest = {place: leaves[place].to(device) for place in places if place not in filled}
    made = [filled.get(n, rest.get(n, one)) for n, one in enumerate(leaves)]
    return tuple(torch.utils._pytree.tree_unflatten(made, structure))
