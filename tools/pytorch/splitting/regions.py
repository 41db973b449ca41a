"""Regions of a graph as graphs of their own, and the wires between them.

A region is a run of nodes in the order of their execution, so that regions run one after another.
What costs nothing to compute again, views of inputs and tables made of constants, belongs to no
region: each that reads it has its own copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kopt.tools.pytorch.graph import (
    Argument,
    Atom,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Node,
    Ref,
    ValueType,
    refs,
)
from kopt.tools.pytorch.operators import CONTRACTIONS, VIEWS, base_name


@dataclass(frozen=True)
class Segment:
    """A run of nodes that becomes a region."""

    label: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Region:
    """A region as a graph whose inputs and outputs are wires of the whole."""

    label: str
    graph: Graph
    wires: Mapping[str, str]
    """Name of a wire by the name of an input or output of `graph`."""


def wire_of(ref: Ref) -> str:
    """Return the name of a value between regions."""
    return f"{ref.node}__{ref.result}" if ref.result else ref.node


def copied_nodes(graph: Graph) -> dict[str, Node]:
    """Return the nodes that each reader computes again: views of inputs, tables of constants."""
    tables = {one.name for one in graph.inputs if one.drawing.kind == "stored"}
    views = {one.name for one in graph.inputs}
    found: dict[str, Node] = {}
    for node in graph.nodes:
        sources = {ref.node for ref in refs(node)}
        name = base_name(node.op)
        if sources <= tables and name not in CONTRACTIONS:
            tables.add(node.name)
        elif not (name in VIEWS and sources <= views):
            continue
        views.add(node.name)
        found[node.name] = node
    return found


def regions_of(graph: Graph, segments: Sequence[Segment]) -> list[Region]:
    """Return the regions of `graph`; the segments hold every node but copied ones, in order."""
    places = {node.name: n for n, one in enumerate(segments) for node in one.nodes}
    copied = copied_nodes(graph)
    wanted: list[dict[Ref, list[str]]] = [{} for _ in segments]
    for place, segment in enumerate(segments):
        for node in segment.nodes:
            for ref in refs(node):
                if places.get(ref.node, place) != place:
                    wanted[places[ref.node]].setdefault(ref, [])
    for output in graph.outputs:  # of an input, or of a copied node: the last region returns it
        place = places.get(output.value.node, len(segments) - 1)
        wanted[place].setdefault(output.value, []).append(output.name)
    order = {node.name: n for n, node in enumerate(graph.nodes)}
    names = {ref: found[0] for one in wanted for ref, found in one.items() if found}
    regions: list[Region] = []
    for segment, returned in zip(segments, wanted, strict=True):
        builder = _Builder(graph, copied, segment, names)
        for node in segment.nodes:
            builder.take(node)
        for ref in sorted(returned, key=lambda one: (order.get(one.node, -1), one.result)):
            builder.give(ref, returned[ref])
        regions.append(builder.region())
    return regions


@dataclass
class _Builder:
    """A region while it is built."""

    whole: Graph
    copied: Mapping[str, Node]
    segment: Segment
    output_names: Mapping[Ref, str]
    nodes: list[Node] = field(default_factory=list[Node])
    read: dict[Ref, GraphInput] = field(default_factory=dict[Ref, GraphInput])
    given: list[tuple[Ref, str]] = field(default_factory=list[tuple[Ref, str]])

    def take(self, node: Node) -> None:
        """Add a node, after what it reads."""
        for ref in refs(node):
            self._need(ref)
        self.nodes.append(node)

    def give(self, ref: Ref, names: Sequence[str]) -> None:
        """Add an output, once for each name that the whole returns it by."""
        self._need(ref)
        self.given += [(ref, name) for name in names or (wire_of(ref),)]

    def _need(self, ref: Ref) -> None:
        own = {node.name for node in (*self.nodes, *self.segment.nodes)}
        if ref in self.read or ref.node in own:
            return
        if ref.node in self.copied:
            self.take(self.copied[ref.node])
            return
        inputs = {one.name: one for one in self.whole.inputs}
        self.read[ref] = inputs.get(ref.node) or _interface(self.whole.type_of(ref))

    def region(self) -> Region:
        """Return the region: short names for inputs and outputs, nodes keep theirs."""
        taken = {node.name for node in self.nodes}
        prefix = self.segment.label.replace(".", "_").lower() + "_"
        renamed: dict[Ref, Ref] = {}
        wires: dict[str, str] = {}
        inputs: list[GraphInput] = []
        for ref, one in sorted(self.read.items(), key=lambda item: item[1].kind != "input"):
            wanted = one.name.removeprefix(prefix) if one.kind != "input" else "x"
            is_clear = wanted in ("x", "weight", "bias") or "_" in wanted[1:]
            name = _free(wanted if is_clear and wanted[0].isalpha() else one.name, taken)
            renamed[ref] = Ref(node=name)
            is_whole = ref.node in {given.name for given in self.whole.inputs}
            wires[name] = ref.node if is_whole else self.output_names.get(ref, wire_of(ref))
            inputs.append(one.model_copy(update={"name": name}))
        outputs: list[GraphOutput] = []
        for ref, wire in self.given:
            name = _free("out", taken)
            wires[name] = wire
            outputs.append(GraphOutput(name=name, value=renamed.get(ref, ref)))
        graph = Graph(
            torch=self.whole.torch,
            inputs=tuple(inputs),
            nodes=tuple(with_refs(node, renamed) for node in self.nodes),
            outputs=tuple(outputs),
        )
        return Region(self.segment.label, graph, wires)


def _interface(kind: ValueType) -> GraphInput:
    return GraphInput(name="x", kind="input", type=kind, drawing=Drawing(kind="normal"))


def _free(name: str, taken: set[str]) -> str:
    """Return `name`, with a number if it is taken, and take it."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    taken.add(found)
    return found


def with_refs(node: Node, renamed: Mapping[Ref, Ref]) -> Node:
    """Return `node` with other values for those that it reads."""

    def atom(one: Atom) -> Atom:
        return renamed.get(one, one) if isinstance(one, Ref) else one

    def argument(one: Argument) -> Argument:
        return tuple(map(atom, one)) if isinstance(one, tuple) else atom(one)

    return node.model_copy(
        update={
            "args": tuple(map(argument, node.args)),
            "kwargs": {key: argument(one) for key, one in node.kwargs.items()},
        }
    )
