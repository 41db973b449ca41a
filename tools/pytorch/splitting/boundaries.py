"""Where a network is cut: at its blocks, or where few bytes are alive.

A block is what a ModuleList or Sequential numbers: `layers.3`. What lies between blocks goes by its
outermost module, and what has no contraction joins a neighbour: a norm the head that reads it.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from kopt.config.errors import ToolError
from kopt.kernels.problem import MAX_RANK
from kopt.tools.pytorch.graph import Graph, Node, Ref, ValueType, refs
from kopt.tools.pytorch.operators import CONTRACTIONS, RECURRENT, VIEWS, base_name

from .regions import Segment, copied_nodes

_BLOCK = re.compile(r"(?:[^.\d][^.]*\.)*?\d+(?=\.|$)")
_MOST_CUTS = 160
"""Places that are looked at for `--parts`: those where least is alive."""
_HEAVY = CONTRACTIONS | RECURRENT
_TOP = "top"
"""Label of what the outermost module computes itself."""


def by_blocks(graph: Graph) -> list[Segment]:
    """Return a segment for each block.

    Raises:
        ToolError: The graph does not say which modules its nodes are of.
    """
    nodes = _cut_nodes(graph)
    if not any(node.module for node in nodes):
        raise ToolError(
            "graph.json does not name the modules of its operators: import the function again by"
            " kopt new, or choose --parts N"
        )
    segments: list[Segment] = []
    for node in nodes:
        label = _block_of(node.module)
        if segments and segments[-1].label == label:
            segments.append(_joined(segments.pop(), Segment(label, (node,))))
        else:
            segments.append(Segment(label, (node,)))
    return _without_high_ranks(graph, _light_ones_joined(segments))


def by_parts(graph: Graph, count: int, cost: Callable[[Node], float]) -> list[Segment]:
    """Return `count` segments of about equal cost, cut where few bytes are alive.

    Raises:
        ToolError: The graph has no such many places to be cut.
    """
    nodes = _cut_nodes(graph)
    alive = _alive_bytes(graph, nodes)
    places = sorted(sorted(alive, key=lambda place: alive[place])[:_MOST_CUTS])
    if not 1 <= count <= len(places) + 1:
        raise ToolError(f"--parts {count}: this network can be cut into 1 to {len(places) + 1}")
    sums = [0.0]
    for node in nodes:
        sums.append(sums[-1] + cost(node))
    total, least = sums[-1] or 1.0, min(alive.values(), default=1) or 1

    def unevenness(start: int, end: int) -> float:
        return ((sums[end] - sums[start]) / total * count - 1.0) ** 2

    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for _ in range(count - 1):
        best = {
            end: min(
                (before + unevenness(start, end) + 0.1 * alive[end] / least, (*cuts, end))
                for start, (before, cuts) in best.items()
                if start < end
            )
            for end in places
            if min(best) < end
        }
    _, cuts = min((b + unevenness(s, len(nodes)), cuts) for s, (b, cuts) in best.items())
    ends = (0, *cuts, len(nodes))
    pieces = [nodes[start:end] for start, end in pairwise(ends)]
    found = [Segment(f"part{n}", tuple(piece)) for n, piece in enumerate(pieces, 1)]
    return _without_high_ranks(graph, found)


def _cut_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that regions are made of: those that outputs need, without copied ones."""
    copied = copied_nodes(graph)
    wanted = {output.value.node for output in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in wanted:
            wanted.update(ref.node for ref in refs(node))
            kept.extend([] if node.name in copied else [node])
    if not kept:
        raise ToolError("the function computes nothing but views of its inputs: nothing to split")
    return kept[::-1]


def _block_of(module: str) -> str:
    found = _BLOCK.match(module)
    return found[0] if found else module.partition(".")[0] or _TOP


def _joined(one: Segment, other: Segment) -> Segment:
    """Return two neighbours as one, which has the label of the heavier."""
    first, second = _heaviness(one), _heaviness(other)
    return Segment((other if second > first else one).label, (*one.nodes, *other.nodes))


def _heaviness(segment: Segment) -> tuple[int, bool]:
    heavy = sum(base_name(node.op) in _HEAVY for node in segment.nodes)
    return heavy, segment.label != _TOP


def _is_block(segment: Segment) -> bool:
    return segment.label.rpartition(".")[2].isdigit()


def _light_ones_joined(segments: list[Segment]) -> list[Segment]:
    """Return segments that have a contraction each, as far as no block becomes unlike others."""
    found = list(segments)
    place = 0
    while place < len(found):
        join = _neighbour(found, place)
        if join is None:
            place += 1
            continue
        first = min(place, join)
        found[first : first + 2] = [_joined(found[first], found[first + 1])]
        place = 0
    return found


def _neighbour(found: Sequence[Segment], place: int) -> int | None:
    """Return the neighbour that a segment joins; None where it stays what it is."""
    segment = found[place]
    if _heaviness(segment)[0]:
        return None
    before, after = place - 1, place + 1
    near = [one for one in (after, before) if 0 <= one < len(found)]
    if _is_block(segment):
        return max(near, key=lambda one: one == before, default=None)
    others = [one for one in near if not _is_block(found[one])]
    is_view = all(base_name(node.op) in VIEWS for node in segment.nodes)
    return next(iter(others or (near if is_view else [])), None)


def _without_high_ranks(graph: Graph, segments: list[Segment]) -> list[Segment]:
    """Return the segments, joined where a value between them has more axes than a tensor may."""
    found = list(segments)
    place = 0
    while place < len(found) - 1:
        before = {node.name for one in found[: place + 1] for node in one.nodes}
        after = [ref for one in found[place + 1 :] for node in one.nodes for ref in refs(node)]
        crossing = (graph.type_of(ref) for ref in dict.fromkeys(after) if ref.node in before)
        if any(len(one.shape) > MAX_RANK for one in crossing):
            found[place : place + 2] = [_joined(found[place], found[place + 1])]
        else:
            place += 1
    return found


def _alive_bytes(graph: Graph, nodes: Sequence[Node]) -> dict[int, int]:
    """Return by place between two nodes the elements of values that are made before, read after."""
    made = {node.name: place for place, node in enumerate(nodes)}
    last: dict[Ref, int] = {}
    for place, node in enumerate(nodes):
        last |= {ref: place for ref in refs(node) if ref.node in made}
    alive = dict.fromkeys(range(1, len(nodes)), 0)
    for ref, end in last.items():
        for place in range(made[ref.node] + 1, end + 1):
            alive[place] += _weight_of(graph.type_of(ref))
    return alive


def _weight_of(kind: ValueType) -> int:
    """Return how large a value is beside others: sizes that vary count as 64."""
    count = 1
    for size in kind.shape:
        count *= size if isinstance(size, int) else 64
    return count
