"""What the sampled runs of a graph need not compute again: contractions of the exact run.

A contraction of inputs, which no rounding has moved, is the same in every run. The squares of its
terms say how large its roundings are; they may be those of the exact run everywhere, for operands
moved by roundings change them by less than a hundredth, which is far below what a spread of few
samples knows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from .graph import Graph, refs
from .operators import EXACT, base_name
from .torch_library import Tensor

Squares = Callable[[], Tensor]
KEPT_ELEMENTS = 1 << 27
"""Elements that are kept on the CPU: 1 GiB in float64."""


def unmoved_values(graph: Graph) -> frozenset[str]:
    """Return the inputs of `graph`, and the nodes that give their elements as they are."""
    found = {given.name for given in graph.inputs}
    for node in graph.nodes:
        name = base_name(node.op)
        is_exact = name in EXACT and name != "_to_copy"
        if is_exact and all(ref.node in found for ref in refs(node)):
            found.add(node.name)
    return frozenset(found)


@dataclass
class KeptContractions:
    """Results and squares of the exact run, which is over when others read them, by node."""

    unmoved: frozenset[str]
    limit: int = KEPT_ELEMENTS
    """Elements of all that is kept; what is more is computed again."""
    _results: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    _squares: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    _elements: int = 0

    def result(self, name: str) -> Tensor | None:
        """Return what a contraction gives in every run; None if it must be computed."""
        return self._results.get(name)

    def squares(self, name: str) -> Tensor | None:
        """Return the squares of a contraction's terms; None if they must be computed."""
        return self._squares.get(name)

    def keep(self, name: str, reads: frozenset[str], result: Tensor, squares: Squares) -> None:
        """Keep what a contraction gave in the exact run, as far as there is room.

        Args:
            name: Of the node.
            reads: Names of its operands.
            result: Of the exact run.
            squares: Computes the squares of its terms.
        """
        is_same = reads <= self.unmoved
        more = result.numel() * (2 if is_same else 1)
        if self._elements + more > self.limit:
            return
        self._elements += more
        self._squares[name] = squares()
        if is_same:
            self._results[name] = result
