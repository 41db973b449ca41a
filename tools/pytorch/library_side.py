"""Baselines of an imported problem: the user's module on the GPU, eager or compiled.

Runs in a GPU worker, which is sandboxed and loads no candidate's host code. The module is made anew
from model.py and given kopt's tensors in the place of its parameters and buffers; of a part of a
network the graph itself is called. A process makes and compiles it once for each of its shapes,
however many buffer sets there are: torch.compile goes back to eager where it meets a function too
often.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kopt.kernels.problem_loader import load_problem

from .graph import Graph, Ref, read_graph, refs
from .graph_module import graph_module
from .importing.stage import MODEL_FILE, ImportResult
from .importing.user_source import load_function
from .torch_library import load_torch

IMPORT_NAME = "import.json"
_Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Place:
    """Where a module is made and at which size: what decides whether one can be used again."""

    folder: Path
    shapes: tuple[tuple[str, _Shape], ...]
    """Of the problem's tensors."""
    device: str
    mode: str | None
    """Of torch.compile; None: eager."""


_TRAINED_NORM = "aten._native_batch_norm_legit_functional.default"


@dataclass(frozen=True)
class _Callee:
    """A module of one size."""

    call: Callable[[Mapping[str, Any], tuple[Any, ...]], list[Any]]
    """From the state by its paths, and arguments, to the tensors among the results."""
    inputs: tuple[Any, ...] | None = None
    """Arguments as the user's own code gives them; None: the graph's inputs, all of them."""
    unused: frozenset[int] = frozenset()
    """Places, among the tensors of `inputs`, of those that the graph has not."""


def bound_call(
    folder: Path, tensors: Mapping[str, Any], mode: str | None = None
) -> Callable[[], dict[str, Any]]:
    """Return what runs the module once, on the tensors of one case, and returns its outputs.

    Args:
        folder: The problem's.
        tensors: By the problem's names, on the GPU.
        mode: Of torch.compile; None: eager.

    Raises:
        ImportError: The user's module cannot be made from model.py alone.
    """
    torch = load_torch()
    graph = read_graph(folder)
    shapes = tuple((name, tuple(one.shape)) for name, one in tensors.items())
    outputs = [output.name for output in graph.outputs]
    callee = _callee(_Place(folder, shapes, str(tensors[outputs[0]].device), mode))
    state: dict[str, Any] = {}
    if callee.inputs is None:
        arguments = tuple(tensors[one.name] for one in graph.inputs)
    else:
        own = updated_statistics(graph)
        state = {
            one.path: _private(tensors[one.name]) if one.name in own else tensors[one.name]
            for one in graph.inputs
            if one.path
        }
        given = [tensors[one.name] for one in graph.inputs if one.kind == "input"]
        arguments = arguments_of(callee.inputs, given, callee.unused)

    def run() -> dict[str, Any]:
        with torch.no_grad():
            return dict(zip(outputs, callee.call(state, arguments), strict=True))

    return run


def updated_statistics(graph: Graph) -> frozenset[str]:
    """Return the inputs that a batch norm updates: running statistics that no output depends on.

    A module that trains writes them in every call, and an input may not be written.
    """
    trained = [node for node in graph.nodes if node.op == _TRAINED_NORM and node.args[5] is True]
    updated = {one.node for node in trained for one in node.args[3:5] if isinstance(one, Ref)}
    others = (node for node in graph.nodes if node not in trained)
    read = {ref.node for node in others for ref in refs(node)}
    returned = {output.value.node for output in graph.outputs}
    return frozenset(updated - read - returned)


def _private(tensor: Any) -> Any:
    """Return zeros of the shape and dtype of `tensor`, in memory of their own."""
    return load_torch().zeros_like(tensor)


@lru_cache
def _callee(place: _Place) -> _Callee:
    torch = load_torch()
    graph = read_graph(place.folder)
    inputs, unused = None, frozenset[int]()
    if (place.folder / IMPORT_NAME).is_file():
        module, inputs, unused = _module(place, graph)
    else:  # a part of a network, whose graph is all that there is of it
        module = graph_module(graph, _axes(place), place.device)

    def forward(state: Mapping[str, Any], given: tuple[Any, ...]) -> list[Any]:
        results = torch.utils._pytree.tree_leaves(torch.func.functional_call(module, state, given))
        return [one for one in results if isinstance(one, torch.Tensor)]

    call = forward if place.mode is None else torch.compile(forward, mode=place.mode)
    return _Callee(call, inputs, unused)


def _axes(place: _Place) -> dict[str, int]:
    """Return the axes of the workload that has the shapes of `place`.

    Raises:
        ImportError: There is none.
    """
    problem = load_problem(place.folder)
    for workload in problem.workloads:
        shapes = {t.name: tuple(workload.axes[one] for one in t.shape) for t in problem.tensors}
        if shapes == dict(place.shapes):
            return workload.axes
    raise ImportError(f"{problem.name} has no workload of these shapes")


def _module(place: _Place, graph: Graph) -> tuple[Any, tuple[Any, ...], frozenset[int]]:
    """Return the user's module, its arguments as the user's code makes them, and unused places."""
    folder = place.folder
    kept = ImportResult.model_validate_json((folder / IMPORT_NAME).read_bytes())
    if not (folder / MODEL_FILE).is_file():
        raise ImportError(f"{folder} has no {MODEL_FILE}: it was imported from an installed module")
    request = kept.export.model_copy(
        update={"source": str(folder / MODEL_FILE), "import_path": (str(folder),)}
    )
    shapes = dict(place.shapes)
    wanted = [shapes[one.name] for one in graph.inputs if one.kind == "input"]
    unused = frozenset(kept.unused.values())
    small = {name: values[0] for name, values in kept.changed.items()}
    for values in ({}, small):
        module, inputs = load_function(request).build(values)
        if _used_shapes(inputs, unused) == wanted:
            return module.to(place.device), inputs, unused
    raise ImportError("the module was imported at other shapes than this")


def _used_shapes(inputs: tuple[Any, ...], unused: Set[int]) -> list[_Shape]:
    torch = load_torch()
    leaves = torch.utils._pytree.tree_leaves(inputs)
    tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
    return [tuple(one.shape) for place, one in enumerate(tensors) if place not in unused]


def arguments_of(
    inputs: tuple[Any, ...], tensors: Sequence[Any], unused: Set[int]
) -> tuple[Any, ...]:
    """Return the user's arguments with kopt's tensors in place of those that the function uses.

    Args:
        inputs: As the user's own code gives them: numbers, and lists of tensors, are among them.
        tensors: In the order of the graph's inputs.
        unused: Places, among the tensors of `inputs`, of those that the graph has not.
    """
    torch = load_torch()
    leaves, structure = torch.utils._pytree.tree_flatten(inputs)
    places = [n for n, one in enumerate(leaves) if isinstance(one, torch.Tensor)]
    used = [place for number, place in enumerate(places) if number not in unused]
    filled: dict[int, Any] = dict(zip(used, tensors, strict=True))
    device = tensors[0].device if tensors else "cuda"
    rest = {place: leaves[place].to(device) for place in places if place not in filled}
    made = [filled.get(n, rest.get(n, one)) for n, one in enumerate(leaves)]
    return tuple(torch.utils._pytree.tree_unflatten(made, structure))
