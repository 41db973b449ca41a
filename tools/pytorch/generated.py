"""The kernels that kopt writes for a problem by itself: one for each set of techniques.

What a problem computes is known as a graph where it was imported (graph.json) and where its PyTorch
reference was exported (definition.json); other problems have none.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError, UnsupportedOperator
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.graph import FILE_NAME, AxisSize, Graph, read_graph

from .emit import emit_candidate
from .lowering.row_schedule import TECHNIQUES, Schedule

DEFINITION_FILE = "definition.json"


@dataclass(frozen=True)
class GeneratedKernels:
    """The kernels of one problem."""

    problem: Problem
    graph: Graph
    techniques: tuple[str, ...]
    """The techniques that change its code, in the order in which they are tried."""

    def source(self, techniques: Iterable[str]) -> str:
        """Return the text of the kernel with these techniques."""
        return emit_candidate(self.problem, self.graph, Schedule(frozenset(techniques)))


def generated_kernels(problem: Problem, arch: str) -> GeneratedKernels | None:
    """Return the kernels that can be written for `problem`; None where nothing is known of it.

    Args:
        problem: A packaged or an imported one.
        arch: The architecture that they are compiled for, such as sm_90a.

    Raises:
        ToolError: The graph beside problem.yaml is damaged, or that of another problem.
    """
    graph = definition_of(problem)
    if graph is None:
        return None
    has_sm_90 = int("".join(re.findall(r"\d", arch))) >= 90
    wanted = [name for name, one in TECHNIQUES.items() if has_sm_90 or not one.needs_sm_90]
    every = GeneratedKernels(problem, graph, ())
    try:
        plain = _code(every.source(()))
        changing = tuple(name for name in wanted if _code(every.source((name,))) != plain)
    except (ToolError, UnsupportedOperator):
        return None
    return GeneratedKernels(problem, graph, changing)


def _code(source: str) -> str:
    """Return a kernel without what its header says of the techniques."""
    return re.sub(r"^(family|note): .*\n", "", source, flags=re.MULTILINE)


def definition_of(problem: Problem) -> Graph | None:
    """Return what `problem` computes; None if no graph of it lies beside its problem.yaml.

    Raises:
        ToolError: The graph is damaged, or has other tensors than the problem.
    """
    for name in (DEFINITION_FILE, FILE_NAME):
        if (problem.folder / name).is_file():
            graph = read_graph(problem.folder, name)
            _refuse_others(problem, graph, problem.folder / name)
            return graph
    return None


def _refuse_others(problem: Problem, graph: Graph, path: Path) -> None:
    """Refuse a graph with other tensors, scalars or axes than the problem has."""
    read = {(one.name, one.dtype) for one in problem.tensors if one.role != "out"}
    read |= {(one.name, one.dtype) for one in problem.scalars}
    written = {(one.name, one.dtype) for one in problem.tensors if one.role != "in"}
    given = {(one.name, one.type.dtype) for one in graph.inputs}
    made = {(one.name, graph.type_of(one.value).dtype) for one in graph.outputs}
    types = [one.type for one in graph.inputs]
    types += [one for node in graph.nodes for one in node.results if one is not None]
    axes = {size.axis for one in types for size in one.shape if isinstance(size, AxisSize)}
    others = sorted(name for name, _ in (given ^ read) | (made ^ written))
    others += sorted(axes - set(problem.axes))
    if others:
        raise ToolError(
            f"{path} does not fit its problem.yaml ({', '.join(dict.fromkeys(others))}):"
            " remove it, or write it anew (docs/generated.md)"
        )
