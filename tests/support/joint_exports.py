"""Several modules through torch.export as one, and which nodes and tensors are whose."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, cast

import torch

Inputs = Sequence[tuple[torch.Tensor, ...]]
"""A module's inputs, for each of its shapes."""


@dataclass(frozen=True)
class ExportedPart:
    """One of the modules that were exported together, at one shape."""

    nodes: list[Any]
    returned: list[Any]
    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]


class _Together(torch.nn.Module):
    """Calls several modules, each with its own inputs."""

    def __init__(self, modules: Sequence[torch.nn.Module], takes: Sequence[int]) -> None:
        super().__init__()
        self._called = torch.nn.ModuleList(modules)
        self._takes = takes

    def forward(self, *given: torch.Tensor) -> Any:
        results: list[torch.Tensor] = []
        for module, own in zip(self._called, _portions(given, self._takes), strict=True):
            result = module(*own)
            results += result if isinstance(result, tuple) else (result,)
        return tuple(results)


def export_parts(
    modules: Sequence[tuple[torch.nn.Module, Inputs]], shape: int
) -> list[ExportedPart]:
    """Export all modules at one of their shapes and run each."""
    given = [inputs[shape] for _, inputs in modules]
    takes = [len(own) for own in given]
    program = _exported(_Together([one for one, _ in modules], takes), tuple(chain(*given)))
    with torch.no_grad():
        outputs = [_flat(module(*own)) for (module, _), own in zip(modules, given, strict=True)]
    nodes = list(program.graph.nodes)
    tensors = _tensors(program, [node for node in nodes if node.op == "placeholder"], given)
    users = list(tensors)[len(tensors) - sum(takes) :]
    gives = [len(own) for own in outputs]
    returned = nodes[-1].args[0]
    results = _portions(returned[len(returned) - sum(gives) :], gives)
    parts: list[ExportedPart] = []
    for own, gets, outs in zip(results, _portions(users, takes), outputs, strict=True):
        needed = {*gets}
        waiting = list(own)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        kept = [node for node in nodes if node in needed]
        inputs = [tensors[node] for node in kept if node in tensors]
        parts.append(ExportedPart(kept, list(own), inputs, outs))
    return parts


def _portions(row: Sequence[Any], sizes: Sequence[int]) -> list[Sequence[Any]]:
    """Return consecutive parts of `row`, which have these sizes."""
    ends = list(accumulate(sizes, initial=0))
    return [row[start:end] for start, end in pairwise(ends)]


def _tensors(program: Any, nodes: Sequence[Any], given: Inputs) -> dict[Any, torch.Tensor]:
    """Return parameters, buffers, constants and inputs by their placeholders."""
    users = chain(*given)
    found: dict[Any, torch.Tensor] = {}
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        if spec.kind.name == "USER_INPUT":
            found[node] = next(users)
        elif spec.target in program.state_dict:
            found[node] = program.state_dict[spec.target].detach()
        else:
            found[node] = program.constants[spec.target]
    return found


def _flat(result: Any) -> list[torch.Tensor]:
    is_many = isinstance(result, tuple)
    listed = list(cast(tuple[Any, ...], result)) if is_many else [result]
    return [one.detach() for one in listed]


@lru_cache(maxsize=1)
def _decompositions() -> Any:
    """Return the decompositions to core ATen; recurrent layers stay whole.

    As a plain dictionary: torch's own kind of table looks through all operators in each export.
    """
    table: Any = torch.export.default_decompositions()
    for kept in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
        table.pop(kept, None)
    return table.materialize()


def _exported(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> Any:
    table = _decompositions()
    with torch.no_grad(), warnings.catch_warnings():
        # torch 2.13 copies its own tree specifications in a way that it calls deprecated.
        warnings.simplefilter("ignore", FutureWarning)
        # Recurrent layers keep a list of their weights, which export finds assigned.
        warnings.filterwarnings("ignore", "The tensor attributes .*_flat_weights", UserWarning)
        program: Any = torch.export.export(module, given, strict=False)
        return program.run_decompositions(table)
