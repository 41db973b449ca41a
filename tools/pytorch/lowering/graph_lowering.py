"""A whole graph as kernels: its nodes in order, each lowered by the table of operators."""

from collections.abc import Mapping, Sequence

from kopt.config.errors import UnsupportedOperator
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.custom_operators import NAMESPACE, WRITTEN_WHERE
from kopt.tools.pytorch.graph import AxisSize, Graph, Node, needed_nodes, refs

from .buffers import Buffer, BufferKind
from .call import Call
from .cuda_types import STORED
from .late_factors import with_late_factors
from .operator_table import check_dtypes, lowering_of, pointwise_operators
from .program import CHEAP, LoweredProgram, has_pending
from .row_plan import NotRowByRowError
from .row_schedule import PLAIN, Schedule
from .rows import RowProgram
from .sizes import Shape, SizeTable, shape_of, size_of
from .tiles import TileProgram
from .values import Constant, Stored, Value, Viewed, converted

_Place = tuple[str, int]
_MOST_STEPS = 12
"""How far the readers of a value are followed to where they meet."""


def lowered(problem: Problem, graph: Graph, schedule: Schedule = PLAIN) -> LoweredProgram:
    """Return the kernels that compute the outputs of `graph`.

    One that makes rows, or one for each output where all are pointwise, or one for each operator.

    Raises:
        UnsupportedOperator: An operator or dtype has no lowering, or an output lies otherwise.
    """
    for kind in (RowProgram, TileProgram):
        if kind is not RowProgram:
            _refuse_parts(problem, graph)
        found = kind(SizeTable(problem), schedule)
        is_moved = schedule.keeps_products and kind is RowProgram
        try:
            _lower_into(found, problem, with_late_factors(graph) if is_moved else graph)
            found.write()
        except NotRowByRowError:
            continue
        return found
    program = LoweredProgram(SizeTable(problem), schedule.by_operator)
    _lower_into(program, problem, graph)
    return program


def _lower_into(program: LoweredProgram, problem: Problem, graph: Graph) -> None:
    nodes = needed_nodes(graph.nodes, graph.outputs)
    driver = _Driver(program, graph, nodes, _buffers(program, problem, graph))
    for node in nodes:
        driver.lower(node)
    driver.finish()


def _buffers(program: LoweredProgram, problem: Problem, graph: Graph) -> dict[str, Buffer]:
    """Return the buffers of the graph's inputs and outputs by name.

    Raises:
        UnsupportedOperator: One has a dtype without a CUDA type, or is padded.
    """
    scalars = {scalar.name for scalar in problem.scalars}
    static = {tensor.name for tensor in problem.tensors if tensor.static}
    written = {output.name for output in graph.outputs}
    found: dict[str, Buffer] = {}
    for one in graph.inputs:
        if one.type.dtype not in STORED:
            raise UnsupportedOperator(
                f"the input {one.name} is {one.type.dtype}; supported are {', '.join(STORED)}"
            )
        kind: BufferKind = "inout" if one.name in written else "in"
        kind = "scalar" if one.name in scalars else kind
        shape = shape_of(one.type)
        if kind == "in":
            held = _held_shape(problem, one.name)
            shape = held if _is_padded(program, held, shape) else shape
        found[one.name] = Buffer(one.name, one.type.dtype, shape, kind, one.name in static)
    for output in graph.outputs:
        made = graph.type_of(output.value)
        shape = _shape_in_memory(program, problem, output.name, shape_of(made))
        layout = problem.tensor(output.name).layout
        made_here = Buffer(output.name, made.dtype, shape, "out", layout=layout)
        found.setdefault(output.name, made_here)
    return found


def _shape_in_memory(program: LoweredProgram, problem: Problem, name: str, shape: Shape) -> Shape:
    """Return the shape of an output with its padding, which only rows are written around."""
    held = _held_shape(problem, name)
    if not _is_padded(program, held, shape):
        return shape
    if not isinstance(program, RowProgram):
        raise UnsupportedOperator(f"{name} is padded, and no kernel makes it row by row")
    return held


def _held_shape(problem: Problem, name: str) -> Shape:
    return tuple(size_of(AxisSize(axis=axis)) for axis in problem.tensor(name).shape)


def _is_padded(program: LoweredProgram, held: Shape, shape: Shape) -> bool:
    return len(held) == len(shape) and not program.sizes.same_shape(held, shape)


def _refuse_parts(problem: Problem, graph: Graph) -> None:
    """Refuse outputs that lie in tiles or are written in part, which only rows are."""
    ops = {node.name: node.op for node in graph.nodes}
    for output in graph.outputs:
        is_part = ops.get(output.value.node) == f"{NAMESPACE}.{WRITTEN_WHERE}.default"
        if is_part or problem.tensor(output.name).layout != "row_major":
            raise UnsupportedOperator(
                f"{output.name} lies in tiles or is written in part, and no kernel makes it row by"
                " row"
            )


def _without_padding(buffer: Buffer, shape: Shape) -> Value:
    """Return an input as the graph knows it: its first elements along axes that are padded."""
    stored = Stored(buffer, buffer.shape)
    if buffer.shape == shape:
        return stored
    return Viewed(stored, shape, lambda body, index: index)


class _Driver:
    """Lowers nodes, and stores the results that outputs or several readers need."""

    def __init__(
        self,
        program: LoweredProgram,
        graph: Graph,
        nodes: Sequence[Node],
        given: Mapping[str, Buffer],
    ) -> None:
        self._program = program
        self._values: dict[_Place, Value] = {}
        self._order = {node.name: number for number, node in enumerate(nodes)}
        self._users: dict[_Place, list[Node]] = {}
        for node in nodes:
            for place in dict.fromkeys((ref.node, ref.result) for ref in refs(node)):
                self._users.setdefault(place, []).append(node)
        self._outputs: dict[_Place, Buffer] = {}
        self._copies: list[tuple[_Place, Buffer]] = []
        for output in graph.outputs:
            place = (output.value.node, output.value.result)
            program.unique(output.name)
            buffer = given[output.name]
            if place in self._outputs or output.value.node in {one.name for one in graph.inputs}:
                self._copies.append((place, buffer))
            else:
                self._outputs[place] = buffer
        for one in graph.inputs:
            buffer = given[one.name]
            if buffer.kind != "inout":
                program.unique(one.name)
            self._values[one.name, 0] = _without_padding(buffer, shape_of(one.type))

    def lower(self, node: Node) -> None:
        """Lower one node."""
        check_dtypes(node, frozenset(STORED))
        program = self._program
        program.node = node
        read = frozenset(
            place
            for place in range(len(node.results))
            if (node.name, place) in self._users or (node.name, place) in self._outputs
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
            return self._program.output(value, output)
        if isinstance(value, Constant | Stored):
            return value
        is_shared = len(self._users.get(place, ())) > 1
        is_unwritten = is_shared and has_pending(value) and not self._meet_again(place)
        if is_shared and (value.cost > CHEAP or is_unwritten):
            return self._program.shared(value)
        return self._program.limited(value)

    def _meet_again(self, place: _Place) -> bool:
        """Return whether all readers of a value are pointwise and end in one pointwise node.

        Then that node can be joined to the kernel of the value: x * sigmoid(x).
        """
        ends = {node.name: node for node in self._users.get(place, ())}
        for _ in range(_MOST_STEPS):
            if len(ends) == 1:
                return all(node.op in pointwise_operators() for node in ends.values())
            first = min(ends.values(), key=lambda node: self._order[node.name])
            readers = self._users.get((first.name, 0), [])
            is_output = (first.name, 0) in self._outputs
            if is_output or len(readers) != 1 or first.op not in pointwise_operators():
                return False
            del ends[first.name]
            ends[readers[0].name] = readers[0]
        return False

    def finish(self) -> None:
        """Copy what is returned twice, or as it came, and then what takes the place of an input."""
        for place, buffer in self._copies:
            self._program.output(self._values[place], buffer)
        self._program.end()
