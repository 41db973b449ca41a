"""A network of two equal blocks and a head, by hand; its parts with their first kernels."""

from dataclasses import replace
from pathlib import Path

from kopt.kernels.candidate import Candidate
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Drawing, Graph, GraphInput, GraphOutput, Node, Ref
from kopt.tools.pytorch.importing.probing import CheckBasis
from kopt.tools.pytorch.importing.problem_folder import fill_folder
from kopt.tools.pytorch.importing.problem_making import ProblemText, make_problem
from kopt.tools.pytorch.importing.sizes_as_axes import SizedGraph
from kopt.tools.pytorch.oracle import digest_of
from kopt.tools.pytorch.splitting.boundaries import by_blocks
from kopt.tools.pytorch.splitting.regions import Region, regions_of
from kopt.tools.pytorch.splitting.split_file import (
    SPLIT_FILE,
    WHOLE_FOLDER,
    Split,
    SplitPart,
    SplitStep,
)
from kopt.tools.pytorch.splitting.sub_problems import SubProblem, sub_problems_of
from kopt.tools.pytorch.stitching.part_names import PartNames
from kopt.tools.pytorch.stitching.plan import Step, StitchPlan

from .hand_made_graphs import COLUMNS, ROWS, problem_of, value_type

MATRIX = value_type(ROWS, COLUMNS)
SHAPES = ({"B": 5, "N": 7}, {"B": 40, "N": 24})


def _node(name: str, op: str, module: str, *args: Argument, columns: int = 0) -> Node:
    kind = value_type(ROWS, columns) if columns else MATRIX
    return Node(name=name, op=f"aten.{op}", args=args, results=(kind,), module=module)


def _given(name: str, kind: str, path: str = "", columns: int = 0) -> GraphInput:
    shapes = {"input": MATRIX, "parameter": value_type(COLUMNS, columns or COLUMNS)}
    drawing = Drawing(kind="normal", deviation=1.0 if kind == "input" else 0.3)
    return GraphInput.model_validate(
        {"name": name, "kind": kind, "type": shapes[kind], "drawing": drawing, "path": path}
    )


def network() -> Graph:
    """Return two blocks x + relu(x @ w), and a head that has three columns."""
    nodes: list[Node] = []
    value = Ref(node="x")
    for block in range(2):
        module = f"layers.{block}"
        weight = Ref(node=f"layers_{block}_fc_weight")
        nodes += [
            _node(f"mm{block}", "mm.default", f"{module}.fc", value, weight),
            _node(f"relu{block}", "relu.default", module, Ref(node=f"mm{block}")),
            _node(f"add{block}", "add.Tensor", module, value, Ref(node=f"relu{block}")),
        ]
        value = Ref(node=f"add{block}")
    nodes.append(_node("top", "mm.default", "head", value, Ref(node="head_weight"), columns=3))
    return Graph(
        torch="2.13.0",
        inputs=(
            _given("layers_0_fc_weight", "parameter", "layers.0.fc.weight"),
            _given("layers_1_fc_weight", "parameter", "layers.1.fc.weight"),
            _given("head_weight", "parameter", "head.weight", columns=3),
            _given("x", "input"),
        ),
        nodes=tuple(nodes),
        outputs=(GraphOutput(name="out", value=Ref(node="top")),),
    )


def network_problem() -> Problem:
    """Return the problem of `network` at two shapes."""
    return problem_of(network(), *SHAPES).model_copy(update={"name": "net"})


def cut_network() -> tuple[list[Region], list[SubProblem]]:
    """Return the regions of `network` at its blocks, and its sub-problems."""
    regions = regions_of(network(), by_blocks(network()))
    return regions, sub_problems_of(network_problem(), regions)


def plan_of_parts(sources: dict[str, str] | None = None) -> StitchPlan:
    """Return what is stitched: the first kernel of each part, or another source by its name."""
    graph, whole = network(), network_problem()
    regions, subs = cut_network()
    parts: dict[str, PartNames] = {}
    steps: dict[int, Step] = {}
    for number, sub in enumerate(subs, 1):
        text = ProblemText(sub.name, "", "ieee")
        problem = make_problem(sub.sized, text, Path(), sub.sized.batch)
        source = (sources or {}).get(sub.name) or emit_candidate(problem, sub.sized.graph)
        outcome = parse_header(Candidate(source), problem)
        assert outcome.header is not None, outcome.diagnostics
        parts[sub.name] = PartNames(number, f"r{number}", problem, outcome.header, source, whole)
        steps |= {
            place: Step(sub.name, wires) for place, wires in zip(sub.places, sub.wires, strict=True)
        }
    values = {name: graph.type_of(Ref(node=name)) for name in ("add0", "add1")}
    return StitchPlan(parts, [steps[place] for place in range(len(regions))], values)


def with_header(part: PartNames, **changes: object) -> PartNames:
    """Return a part whose header has other fields."""
    return replace(part, header=part.header.model_copy(update=changes))


def write_split(folder: Path) -> Path:
    """Write `network` as `kopt split` would, without running it, and return the folder."""
    regions, subs = cut_network()
    basis = CheckBasis(regimes=("normal",), derived=(), tiny=0.1, huge=8.0, has_rows=True)
    whole = folder / WHOLE_FOLDER / "net"
    axes: dict[str, str | None] = dict.fromkeys(SHAPES[0])
    workloads = {f"w{number}": dict(shape) for number, shape in enumerate(SHAPES)}
    sized = SizedGraph(graph=network(), axes=axes, workloads=workloads, batch="B")
    for place, one in ((whole, sized), *((folder / sub.name, sub.sized) for sub in subs)):
        place.mkdir(parents=True)
        fill_folder(place, ProblemText(place.name, "a network by hand", "ieee"), one, basis)
    steps = {
        place: SplitStep(part=sub.name, wires=wires)
        for sub in subs
        for place, wires in zip(sub.places, sub.wires, strict=True)
    }
    split = Split(
        whole="net",
        folder=str(folder),
        digest=digest_of(whole / "graph.json"),
        cut="at its blocks",
        weights="estimated",
        gpu="B200",
        workload="w1",
        parts=tuple(
            SplitPart(
                name=sub.name,
                regions=tuple(regions[place].label for place in sub.places),
                weight=weight,
                region_us=1.0,
                operators=len(sub.sized.graph.nodes),
                launches=1,
                samples=0,
            )
            for sub, weight in zip(subs, (0.75, 0.25), strict=True)
        ),
        steps=tuple(steps[place] for place in range(len(regions))),
        values={name: network().type_of(Ref(node=name)) for name in ("add0", "add1")},
    )
    (folder / SPLIT_FILE).write_text(split.model_dump_json(), "utf-8")
    (folder / "suite.yaml").write_text(
        "name: net_parts\nproblems:\n  net_layers_0: {weight: 0.75}\n  net_head: {weight: 0.25}\n",
        "utf-8",
    )
    return folder
