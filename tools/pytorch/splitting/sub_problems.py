"""Equal regions as one sub-problem, and the axes that it has."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kopt.config.files import content_hash
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.drawing import stored_name
from kopt.tools.pytorch.graph import AxisSize, Graph, Ref, refs
from kopt.tools.pytorch.importing.sizes_as_axes import (
    SizedGraph,
    expressed,
    input_axes,
    is_alone,
    ordered,
)

from .regions import Region, with_refs

_AXIS_IN_TEXT = re.compile(r'"axis":\s*"([A-Z][A-Z0-9]*)"')


@dataclass(frozen=True)
class SubProblem:
    """Regions that are equal up to names."""

    name: str
    """The name of the problem that stands for them."""
    sized: SizedGraph
    """Its tensors have the names of the first region."""
    places: tuple[int, ...]
    """Of its regions among all, in order."""
    wires: tuple[dict[str, str], ...]
    """Of each of its regions: wires by the names of its tensors."""


def sub_problems_of(whole: Problem, regions: Sequence[Region]) -> list[SubProblem]:
    """Return what is to be solved, in the order of first use."""
    alike: dict[str, list[int]] = {}
    for place, region in enumerate(regions):
        alike.setdefault(_digest(region, whole.folder), []).append(place)
    taken: set[str] = {whole.name}
    found: list[SubProblem] = []
    for places in alike.values():
        first = regions[places[0]]
        name = _name(whole.name, first.label, taken)
        sized = _sized(first.graph, whole)
        names = _tensor_names(first.graph)
        wires = tuple(
            {
                name: regions[place].wires[theirs]
                for name, theirs in zip(names, _tensor_names(regions[place].graph), strict=True)
            }
            for place in places
        )
        found.append(SubProblem(name, sized, tuple(places), wires))
    return found


def _tensor_names(graph: Graph) -> list[str]:
    return [*(one.name for one in graph.inputs), *(one.name for one in graph.outputs)]


def _name(whole: str, label: str, taken: set[str]) -> str:
    short = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    base = f"{whole[:40]}_{short[:30]}".rstrip("_")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _digest(region: Region, folder: Path) -> str:
    """Return what equal regions share: operators, sizes, kinds of inputs, contents of tables."""
    graph = region.graph
    renamed = {one.name: f"i{place}" for place, one in enumerate(graph.inputs)}
    renamed |= {one.name: f"n{place}" for place, one in enumerate(graph.nodes)}
    read = [ref for node in graph.nodes for ref in refs(node)]
    read += [output.value for output in graph.outputs]
    values = {ref: Ref(node=renamed[ref.node], result=ref.result) for ref in read}
    parts: list[str] = []
    for one in graph.inputs:
        drawing = one.drawing
        how = f"{drawing.kind} {drawing.per_fan_in} {drawing.was_constant}"
        table = _table_digest(region.wires[one.name], folder) if drawing.kind == "stored" else ""
        parts.append(f"{one.kind} {one.type.model_dump_json()} {how} {table}")
    for node in graph.nodes:
        plain = with_refs(node, values).model_copy(
            update={"name": renamed[node.name], "source": "", "module": ""}
        )
        parts.append(plain.model_dump_json())
    parts += [values[one.value].model_dump_json() for one in graph.outputs]
    return content_hash(parts)


def _table_digest(name: str, folder: Path) -> str:
    files = (folder / stored_name(name), *sorted(folder.glob(f"{name}.*.npy")))
    return " ".join(sha256(one.read_bytes()).hexdigest() for one in files if one.is_file())


def _sized(graph: Graph, whole: Problem) -> SizedGraph:
    """Return a region's graph with the axes of the whole that it has, under their names there."""
    used = set(_AXIS_IN_TEXT.findall(graph.model_dump_json()))
    order = ordered([name for name in whole.axes if name in used], graph)
    values = {name: tuple(one.axes[name] for one in whole.workloads) for name in order}
    rows = _row_axis(graph)
    return SizedGraph(
        graph=graph,
        axes=expressed(order, values, input_axes(graph), rows),
        workloads={one.name: {name: one.axes[name] for name in order} for one in whole.workloads},
        batch=rows if rows is not None and is_alone(graph, rows) else None,
    )


def _row_axis(graph: Graph) -> str | None:
    """Return the outermost axis of the first input that the network feeds."""
    for given in graph.inputs:
        if given.kind == "input":
            first = given.type.shape[0] if given.type.shape else None
            return first.axis if isinstance(first, AxisSize) else None
    return None


def renamed_tables(sub: SubProblem) -> Iterator[tuple[str, str]]:
    """Yield the name in the whole and in the sub-problem of each constant that comes as a file."""
    for given in sub.sized.graph.inputs:
        if given.drawing.kind == "stored":
            yield sub.wires[0][given.name], given.name
