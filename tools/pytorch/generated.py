"""The kernels that kopt writes for a problem by itself: one for each set of techniques.

What a problem computes is known as a graph where it was imported (graph.json) and where its PyTorch
reference was exported (definition.json); other problems have none.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kopt.config.errors import ToolError, UnsupportedOperator
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.graph import FILE_NAME, Graph, read_graph

from .emit import emit_candidate
from .lowering.row_schedule import TECHNIQUES, Schedule

DEFINITION_FILE = "definition.json"
_NEEDS_SM_90 = ("dependent_launch", "cluster_sums")


@dataclass(frozen=True)
class GeneratedKernels:
    """The kernels of one problem."""

    problem: Problem
    graph: Graph
    techniques: tuple[str, ...]
    """Those that change the kernel, in the order in which they are tried."""

    def source(self, techniques: Iterable[str]) -> str:
        """Return the text of the kernel with these techniques."""
        return emit_candidate(self.problem, self.graph, Schedule(frozenset(techniques)))


def generated_kernels(problem: Problem, arch: str) -> GeneratedKernels | None:
    """Return the kernels that can be written for `problem`; None where nothing is known of it.

    Args:
        problem: A packaged or an imported one.
        arch: The architecture that they are compiled for, such as sm_90a.
    """
    graph = definition_of(problem)
    if graph is None:
        return None
    has_sm_90 = int("".join(re.findall(r"\d", arch))) >= 90
    wanted = [name for name in TECHNIQUES if has_sm_90 or name not in _NEEDS_SM_90]
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
    """Return what `problem` computes; None if no graph of it lies beside its problem.yaml."""
    for name in (DEFINITION_FILE, FILE_NAME):
        if (problem.folder / name).is_file():
            return read_graph(problem.folder, name)
    return None
