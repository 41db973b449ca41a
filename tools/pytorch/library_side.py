"""Baselines of an imported problem: the user's module on the GPU, eager or compiled.

Runs in a GPU worker, which is sandboxed and loads no candidate's host code. The module is made anew
from model.py and given kopt's tensors in the place of its parameters and buffers.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .graph import Graph, read_graph
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
    module, places = _module(folder, graph, tensors)
    state = {one.path: tensors[one.name] for one in graph.inputs if one.path}
    inputs = [tensors[name] for name in places]
    outputs = [tensors[output.name] for output in graph.outputs]

    def forward(given: list[Any], into: list[Any]) -> None:
        results = torch.utils._pytree.tree_leaves(
            torch.func.functional_call(module, state, tuple(given))
        )
        made = [one for one in results if isinstance(one, torch.Tensor)]
        # Within what is compiled: there the copy is part of the kernel that makes the result.
        for output, result in zip(into, made, strict=True):
            output.copy_(result)

    call = forward if mode is None else torch.compile(forward, mode=mode)

    def run() -> None:
        with torch.no_grad():
            call(inputs, outputs)

    return run


def _module(folder: Path, graph: Graph, tensors: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the user's module on the GPU at the size of `tensors`, and its inputs in order."""
    torch = load_torch()
    kept = ImportResult.model_validate_json((folder / IMPORT_NAME).read_bytes())
    if not (folder / MODEL_FILE).is_file():
        raise ImportError(f"{folder} has no {MODEL_FILE}: it was imported from an installed module")
    request = kept.export.model_copy(
        update={"source": str(folder / MODEL_FILE), "import_path": (str(folder),)}
    )
    small = {name: values[0] for name, values in kept.changed.items()}
    for values in ({}, small):
        module, inputs = load_subject(request).build(values)
        given = [
            one for one in torch.utils._pytree.tree_leaves(inputs) if isinstance(one, torch.Tensor)
        ]
        names = [one.name for one in graph.inputs if one.kind == "input"]
        if [one.shape for one in given] == [tensors[name].shape for name in names]:
            return module.to("cuda"), names
    raise ImportError("the module was imported at other shapes than this")
