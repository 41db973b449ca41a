"""A whole graph as kernels: its nodes in order, each lowered by the table of operators."""

from collections import Counter
from collections.abc import Iterable

from kopt.config.errors import UnsupportedOperator
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.graph import Graph, Node, Ref, refs

from .buffers import Buffer
from .call import Call
from .cuda_types import STORED
from .operator_table import check_dtypes, lowering_of
from .program import CHEAP, Program, has_pending
from .sizes import SizeTable, shape_of
from .values import Constant, Stored, Value, converted

_Place = tuple[str, int]


def lowered(problem: Problem, graph: Graph) -> Program:
    """Return the kernels that compute the outputs of `graph`.

    Raises:
        UnsupportedOperator: An operator or dtype has no lowering.
    """
    program = Program(SizeTable(problem))
    nodes = needed_nodes(graph)
    driver = _Driver(program, graph, nodes)
    for node in nodes:
        driver.lower(node)
    driver.finish()
    return program


def needed_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that the outputs depend on, in order; updates of buffers are left out."""
    wanted = {output.value.node for output in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in wanted:
            kept.append(node)
            wanted.update(ref.node for ref in refs(node))
    return kept[::-1]


class _Driver:
    """Lowers nodes, and stores the results that outputs or several readers need."""

    def __init__(self, program: Program, graph: Graph, nodes: Iterable[Node]) -> None:
        self._program = program
        self._values: dict[_Place, Value] = {}
        self._readers = Counter[_Place]()
        for node in nodes:
            self._readers.update({(ref.node, ref.result) for ref in refs(node)})
        self._outputs: dict[_Place, Buffer] = {}
        self._copies: list[tuple[_Place, Buffer]] = []
        for output in graph.outputs:
            place = (output.value.node, output.value.result)
            given = graph.type_of(output.value)
            buffer = Buffer(output.name, given.dtype, shape_of(given), "out")
            if place in self._outputs or output.value.node in {one.name for one in graph.inputs}:
                self._copies.append((place, buffer))
            else:
                self._outputs[place] = buffer
        for one in graph.inputs:
            if one.type.dtype not in STORED:
                raise UnsupportedOperator(
                    f"the input {one.name} is {one.type.dtype}; supported are {', '.join(STORED)}"
                )
            shape = shape_of(one.type)
            buffer = Buffer(one.name, one.type.dtype, shape, "in")
            self._values[one.name, 0] = Stored(buffer, shape)

    def lower(self, node: Node) -> None:
        """Lower one node."""
        check_dtypes(node, frozenset(STORED))
        program = self._program
        program.node = node
        read = frozenset(
            place
            for place in range(len(node.results))
            if self._readers[node.name, place] or (node.name, place) in self._outputs
        )
        call = Call(node, program, self._values, read)
        found = lowering_of(node)(call)
        results = found if isinstance(found, tuple) else (found,)
        for place in sorted(read):
            if place >= len(results):
                call.refuse(f"is lowered for its first {len(results)} results only")
            self._values[node.name, place] = self._kept((node.name, place), results[place])

    def _kept(self, place: _Place, value: Value) -> Value:
        """Return a result for its readers: stored if it is an output, or dear and read often."""
        output = self._outputs.get(place)
        if output is not None:
            value = converted(value, output.dtype, self._program.sizes)
            return self._program.realise(value, output)
        if isinstance(value, Constant | Stored):
            return value
        if self._readers[place] > 1 and (value.cost > CHEAP or has_pending(value)):
            return self._program.realise(value)
        return self._program.limited(value)

    def finish(self) -> None:
        """Copy what is returned twice, or as it came."""
        for place, buffer in self._copies:
            self._program.realise(self._values[place], buffer)


def read_of(ref: Ref) -> _Place:
    """Return the key of a value."""
    return ref.node, ref.result
