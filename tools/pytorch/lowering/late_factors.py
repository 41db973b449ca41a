"""A graph in which what a whole row is multiplied by comes last: x * s * w becomes (x * w) * s.

The factor s of a row is known once the row is reduced, such as the reciprocal root of its mean
square; the product with w is not the later for it. The largest magnitude of a group is taken before
the factor, too: of rounded values it is the same number, since rounding keeps their order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType, needed_nodes, refs

from .operator_table import pointwise_operators

_PRODUCT, _CAST, _VIEW = "aten.mul.Tensor", "aten._to_copy.default", "aten.view.default"
_MAGNITUDE, _LARGEST = "aten.abs.default", "aten.amax.default"
_MOVED = (_CAST, _VIEW, _MAGNITUDE)
"""What may stand between a product and the largest magnitude of it."""
_ROUNDED = ("float32", "bfloat16", "float16")
"""Dtypes that a number is rounded to without changing the order of numbers."""


def with_late_factors(graph: Graph) -> Graph:
    """Return a graph of the same function but for rounding; `graph` where nothing can be moved.

    Where a product overflows that the factor would have made smaller, or is below 2^-126 and the
    factor would have made it larger, or a factor is infinite, its results differ.
    """
    taken = frozenset((*(one.name for one in graph.inputs), *(one.name for one in graph.nodes)))
    rewriting = _Rewriting({one.name: one.type for one in graph.inputs}, taken)
    for node in graph.nodes:
        rewriting.add(node)
    nodes = needed_nodes(rewriting.nodes, graph.outputs)
    return graph.model_copy(update={"nodes": tuple(nodes)})


@dataclass
class _Rewriting:
    """The nodes so far, in order."""

    types: dict[str, ValueType]
    taken: frozenset[str]
    """Names of the graph as it was given."""
    nodes: list[Node] = field(default_factory=list[Node])
    _by_name: dict[str, Node] = field(default_factory=dict[str, Node])
    _late: set[str] = field(default_factory=set[str])
    """Values that are known once rows are reduced."""

    def add(self, node: Node) -> None:
        """Add a node, rewritten where a factor of a row can be moved behind it."""
        moved = self._product(node) or self._largest(node)
        for one in moved or (node,):
            self.nodes.append(one)
            self._by_name[one.name] = one
            if one.results[0] is not None:
                self.types[one.name] = one.results[0]
            is_early = one.op in pointwise_operators() or one.op in _MOVED
            if not is_early or any(ref.node in self._late for ref in refs(one)):
                self._late.add(one.name)

    def _product(self, node: Node) -> tuple[Node, ...]:
        """Return e * g, and the node as that times f, where it is (e * f) * g."""
        pair = self._factored(node)
        if pair is None:
            return ()
        inner, other = pair
        found = self._factored_row(inner)
        if found is None or not self._is_early(other):
            return ()
        early, factor = found
        kept = Node(
            name=self._fresh(f"{node.name}_early"),
            op=_PRODUCT,
            args=(Ref(node=early), Ref(node=other)),
            results=node.results,
            source=node.source,
            module=node.module,
        )
        return kept, node.model_copy(update={"args": (Ref(node=kept.name), Ref(node=factor))})

    def _factored(self, node: Node) -> tuple[Node, str] | None:
        """Return the operand of a product that is one of a row and its factor, and the other."""
        operands = _operands(node)
        if operands is None or not self._is_float(node.name, node):
            return None
        for inner, other in (operands, operands[::-1]):
            made = self._by_name.get(inner)
            if made is not None and self._factored_row(made) is not None:
                return made, other
        return None

    def _factored_row(self, node: Node) -> tuple[str, str] | None:
        """Return e and f of a node e * f: e is known before rows are reduced, f is of a row."""
        operands = _operands(node)
        if operands is None or not self._is_float(node.name, node):
            return None
        for early, factor in (operands, operands[::-1]):
            shape = self.types[factor].shape
            is_of_rows = factor in self._late and bool(shape) and shape[-1] == 1
            same = shape[:-1] == self.types[early].shape[:-1] and self.types[early].shape[-1] != 1
            if is_of_rows and same and self._is_early(early) and self._is_float(factor):
                return early, factor
        return None

    def _largest(self, node: Node) -> tuple[Node, ...]:
        """Return max |e| with the factor behind it, where the node is max |e * f| over columns."""
        chain = self._chain(node) if node.op == _LARGEST else []
        found = self._factored_row(chain[0]) if chain else None
        result = node.results[0]
        if found is None or result is None or not any(one.op == _MAGNITUDE for one in chain):
            return ()
        early, factor = found
        rows = self.types[factor].shape[:-1]
        shapes = [self.types[one.name].shape for one in chain]
        is_in_row = node.args[1:2] in (((-1,),), ((len(shapes[-1]) - 1,),))  # none: over all
        is_rounded = {self.types[one.name].dtype for one in chain} <= set(_ROUNDED)
        heads = [shape[: len(rows)] for shape in (*shapes, result.shape)]
        if not is_in_row or not is_rounded or any(head != rows for head in heads):
            return ()
        made: list[Node] = []

        def then(op: str, read: str, shape: Sequence[object], *rest: Argument, to: str) -> str:
            name = self._fresh(f"{node.name}_early{len(made) + 1}")
            kind = ValueType.model_validate({"dtype": to, "shape": tuple(shape)})
            kwargs: Mapping[str, Argument] = {"dtype": to} if op == _CAST else {}
            args = (Ref(node=read), *rest)
            made.append(Node(name=name, op=op, args=args, kwargs=dict(kwargs), results=(kind,)))
            return name

        place = early
        for one in chain[1:]:
            if one.op == _VIEW:
                place = then(_VIEW, place, self.types[one.name].shape, *one.args[1:], to="float32")
        place = then(_MAGNITUDE, place, self._shape(made, place), to="float32")
        place = then(_LARGEST, place, result.shape, *node.args[1:], to="float32")
        size = then(_MAGNITUDE, factor, self.types[factor].shape, to="float32")
        shape = (*rows, *(1 for _ in result.shape[len(rows) :]))
        if shape != self.types[factor].shape:
            size = then(_VIEW, size, shape, shape, to="float32")
        place = then(_PRODUCT, place, result.shape, Ref(node=size), to="float32")
        for one in chain[1:]:
            if one.op == _CAST:
                place = then(_CAST, place, result.shape, to=self.types[one.name].dtype)
        return *made[:-1], made[-1].model_copy(update={"name": node.name, "results": node.results})

    def _fresh(self, name: str) -> str:
        """Return the name of a new node, which nothing else has."""
        return self._fresh(f"{name}_") if name in self.taken else name

    def _shape(self, made: Sequence[Node], name: str) -> Sequence[object]:
        own = next((one.results[0] for one in made if one.name == name), None)
        return (own or self.types[name]).shape

    def _chain(self, node: Node) -> list[Node]:
        """Return a product and what is done with it one after another before `node` reads it."""
        chain: list[Node] = []
        (ref, *_) = refs(node)
        while (made := self._by_name.get(ref.node)) is not None and made.op in _MOVED:
            chain.append(made)
            (ref, *_) = refs(made)
        return [made, *reversed(chain)] if made is not None and made.op == _PRODUCT else []

    def _is_early(self, name: str) -> bool:
        return name not in self._late and self._is_float(name)

    def _is_float(self, name: str, node: Node | None = None) -> bool:
        kind = self.types.get(name) if node is None else node.results[0]
        return kind is not None and kind.dtype == "float32"


def _operands(node: Node) -> tuple[str, str] | None:
    """Return the names of the two tensors that a node multiplies."""
    names = [one.node for one in node.args if isinstance(one, Ref) and one.result == 0]
    return (names[0], names[1]) if node.op == _PRODUCT and len(names) == 2 else None
