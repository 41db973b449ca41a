"""A graph in float32 that was exported in float64: a reference is exact, a kernel need not be."""

from kopt.tools.pytorch.graph import Argument, Atom, Graph, Node, Ref, ValueType

_CAST = "aten._to_copy.default"
_WIDE, _SINGLE = "float64", "float32"


def in_single_precision(graph: Graph) -> Graph:
    """Return `graph` with float32 in the place of float64, and without casts to what a value is."""
    types = {Ref(node=one.name): one.type.dtype for one in graph.inputs}
    renamed: dict[str, Ref] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        made = _single(node, renamed)
        first = made.args[0] if made.args else None
        result = made.results[0]
        dtype = "" if result is None else result.dtype
        if made.op == _CAST and isinstance(first, Ref) and types.get(first) == dtype:
            renamed[node.name] = first
            continue
        types |= {
            Ref(node=made.name, result=place): one.dtype
            for place, one in enumerate(made.results)
            if one is not None
        }
        nodes.append(made)
    outputs = [
        one.model_copy(update={"value": renamed.get(one.value.node, one.value)})
        for one in graph.outputs
    ]
    return graph.model_copy(update={"nodes": tuple(nodes), "outputs": tuple(outputs)})


def _single(node: Node, renamed: dict[str, Ref]) -> Node:
    def argument(given: Argument) -> Argument:
        return tuple(map(atom, given)) if isinstance(given, tuple) else atom(given)

    def atom(given: Atom) -> Atom:
        if isinstance(given, Ref):
            return renamed.get(given.node, given)
        return _SINGLE if given == _WIDE else given

    return node.model_copy(
        update={
            "args": tuple(map(argument, node.args)),
            "kwargs": {key: argument(one) for key, one in node.kwargs.items()},
            "results": tuple(one and _single_type(one) for one in node.results),
        }
    )


def _single_type(given: ValueType) -> ValueType:
    return given.model_copy(update={"dtype": _SINGLE}) if given.dtype == _WIDE else given
