"""`kopt split`: an imported network made a suite of sub-problems, whole or not at all."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.files import publish_folder, staging_folder
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.roofline import roofline, workload_bytes
from kopt.tools.pytorch.contraction_work import node_cost
from kopt.tools.pytorch.drawing import sample_name
from kopt.tools.pytorch.graph import FILE_NAME, Graph, Ref, ValueType, read_graph
from kopt.tools.pytorch.importing.exported import ANSWER, REQUEST
from kopt.tools.pytorch.importing.handed_back import read_regular
from kopt.tools.pytorch.importing.problem_folder import (
    FilledFolder,
    fill_folder,
    take_array,
    take_constants,
)
from kopt.tools.pytorch.importing.problem_making import ProblemText
from kopt.tools.pytorch.importing.sandboxed import Child, child_policy, ending_of, run_child
from kopt.tools.pytorch.operators import refuse_foreign
from kopt.tools.pytorch.oracle import digest_of

from .boundaries import by_blocks, by_parts
from .regions import Region, Segment, regions_of, wire_of
from .request import PartRequest, RecordAnswer, RecordedPart, RecordRequest
from .split_file import SPLIT_FILE, WHOLE_FOLDER, Split, SplitPart, SplitStep
from .sub_problems import SubProblem, renamed_tables, sub_problems_of

SUITE_FILE = "suite.yaml"
_ANSWER_BYTES = 256 << 20
Timing = Callable[[Problem], float]
"""Given a part's problem: microseconds of one call of its reference.cu."""


@dataclass(frozen=True)
class SplitRequest:
    """What is split, where to, and how."""

    source: Path
    """Folder of an imported problem."""
    folder: Path
    gpu: GpuSpec
    parts: int | None = None
    """How many regions; None: at the blocks of the network."""
    timing: Timing | None = None
    """How times are measured; None: they are estimated from bytes and operations."""
    progress: Callable[[str], None] = ignore


def split_network(request: SplitRequest, settings: Settings) -> Split:
    """Return what was written: a folder with a problem for each part, suite.yaml and split.json.

    Raises:
        ToolError: The source is no imported problem or cannot be cut, or the folder exists.
        SetupError: torch is missing, or the sandbox does not work here.
    """
    place = request.folder.absolute()
    if place.exists():
        raise ToolError(f"{request.folder} is there already: remove it, or choose another -o DIR")
    whole = imported_problem(request.source)
    graph = read_graph(whole.folder)
    refuse_foreign(graph)
    regions = regions_of(graph, _segments(request, whole, graph))
    subs = sub_problems_of(whole, regions)
    with TemporaryDirectory(prefix="kopt-split-") as work:
        recorded = _record(whole, subs, Path(work), (settings, request.progress))
        place.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(place) as staging:
            inner = staging / place.name
            inner.mkdir()
            request.progress("writing the parts")
            filled = [
                _write_part(sub, one, Path(work), inner, whole)
                for sub, one in zip(subs, recorded, strict=True)
            ]
            shutil.copytree(whole.folder, inner / WHOLE_FOLDER / whole.name, symlinks=True)
            found = _described(request, whole, (graph, regions), (subs, recorded, filled))
            (inner / SPLIT_FILE).write_text(found.model_dump_json(indent=1) + "\n", "utf-8")
            (inner / SUITE_FILE).write_text(_suite_text(found), "utf-8")
            if not publish_folder(inner, place):
                raise ToolError(f"{request.folder} is there already: choose another -o DIR")
    return found


def imported_problem(folder: Path) -> Problem:
    """Return the imported problem in `folder`, or the only one below it.

    Raises:
        ToolError: There is none.
    """
    if not folder.is_dir():
        made = " (kopt new FILE.py -o DIR makes one)" if folder.suffix == ".py" else ""
        raise ToolError(f"{folder} is no folder: name the folder of an imported problem{made}")
    if (folder / FILE_NAME).is_file():
        return load_problem(folder.resolve())
    below = sorted(one.parent for one in folder.glob(f"*/{FILE_NAME}"))
    if len(below) == 1:
        return load_problem(below[0].resolve())
    several = f"; there are {', '.join(one.name for one in below)} in it" if below else ""
    raise ToolError(f"{folder} has no {FILE_NAME}: kopt new writes such a folder{several}")


def _segments(request: SplitRequest, whole: Problem, graph: Graph) -> list[Segment]:
    if request.parts is None:
        return by_blocks(graph)
    axes = whole.workloads[-1].axes
    return by_parts(graph, request.parts, lambda node: node_cost(graph, node, axes))


def _record(
    whole: Problem,
    subs: Sequence[SubProblem],
    work: Path,
    how: tuple[Settings, Callable[[str], None]],
) -> tuple[RecordedPart, ...]:
    """Run the network in the sandbox; arrays are then in folders below `work`."""
    inputs = {one.name for one in whole.tensors if one.role == "in"}
    parts = tuple(
        PartRequest(
            name=sub.name,
            sized=sub.sized,
            fed=_fed(sub, inputs),
            tables={here: there for there, here in renamed_tables(sub)},
        )
        for sub in subs
    )
    request = RecordRequest(folder=str(whole.folder), parts=parts)
    (work / REQUEST).write_text(request.model_dump_json(), "utf-8")
    policy = child_policy(work, (whole.folder,))
    run = run_child(Child("kopt.tools.pytorch.splitting.child", work, policy), *how)
    try:
        text = read_regular(work / ANSWER, _ANSWER_BYTES)
        answer = RecordAnswer.model_validate_json(text)
    except (OSError, ValidationError) as error:
        raise ToolError(f"{whole.name}: {ending_of(run)}") from error
    if answer.failure is not None:
        raise answer.failure.error()
    return answer.parts


def _fed(sub: SubProblem, inputs: set[str]) -> tuple[dict[str, str], ...]:
    """Return the wires of those inputs that other regions feed, in one of the equal regions."""
    names = [
        one.name
        for one in sub.sized.graph.inputs
        if any(wires[one.name] not in inputs for wires in sub.wires)
    ]
    return tuple({name: wires[name] for name in names} for wires in sub.wires)


def _write_part(
    sub: SubProblem, recorded: RecordedPart, work: Path, inner: Path, whole: Problem
) -> FilledFolder:
    folder, left = inner / sub.name, work / sub.name
    folder.mkdir()
    take_constants(recorded.sized, left, folder)
    for given in recorded.sized.graph.inputs:
        for number in range(given.drawing.samples):
            file = sample_name(given.name, number)
            take_array(left / file, folder / file)
    regions = f"{len(sub.places)} equal regions" if len(sub.places) > 1 else "a region"
    text = ProblemText(sub.name, f"{regions} of {whole.name}", whole.precision)
    return fill_folder(folder, text, recorded.sized, recorded.basis)


def _described(
    request: SplitRequest,
    whole: Problem,
    cut: tuple[Graph, Sequence[Region]],
    parts: tuple[Sequence[SubProblem], Sequence[RecordedPart], Sequence[FilledFolder]],
) -> Split:
    graph, regions = cut
    subs, recorded, filled = parts
    times = [_time_us(request, one) for one in filled]
    total = sum(us * len(sub.places) for us, sub in zip(times, subs, strict=True)) or 1.0
    found = [
        SplitPart(
            name=sub.name,
            regions=tuple(regions[place].label for place in sub.places),
            weight=us * len(sub.places) / total,
            region_us=us,
            operators=len(sub.sized.graph.nodes),
            launches=written.launches,
            samples=max((o.drawing.samples for o in one.sized.graph.inputs), default=0),
            fault=one.fault,
        )
        for sub, one, written, us in zip(subs, recorded, filled, times, strict=True)
    ]
    by_place = {
        place: SplitStep(part=sub.name, wires=wires)
        for sub in subs
        for place, wires in zip(sub.places, sub.wires, strict=True)
    }
    return Split(
        whole=whole.name,
        folder=str(request.folder),
        digest=digest_of(whole.folder / FILE_NAME),
        cut="at its blocks" if request.parts is None else f"into {request.parts} parts",
        weights="estimated" if request.timing is None else "measured",
        gpu=request.gpu.name,
        workload=whole.workloads[-1].name,
        parts=tuple(sorted(found, key=lambda one: -one.weight)),
        steps=tuple(by_place[place] for place in range(len(regions))),
        values=_value_types(whole, graph, regions),
        warnings=tuple(
            f"{p.name}: {w}" for p, f in zip(found, filled, strict=True) for w in f.warnings
        ),
    )


def _value_types(whole: Problem, graph: Graph, regions: Sequence[Region]) -> dict[str, ValueType]:
    known = {one.name for one in whole.tensors}
    used = {wire for region in regions for wire in region.wires.values()} - known
    return {
        wire: graph.type_of(ref)
        for node in graph.nodes
        for place in range(len(node.results))
        if (wire := wire_of(ref := Ref(node=node.name, result=place))) in used
    }


def _time_us(request: SplitRequest, filled: FilledFolder) -> float:
    problem = filled.problem
    if request.timing is not None and filled.launches is not None:
        request.progress(f"timing {problem.name}")
        return request.timing(problem)
    return roofline(workload_bytes(problem, problem.workloads[-1]), request.gpu).floor_us


def _suite_text(split: Split) -> str:
    lines = [
        f"name: {split.whole}_parts",
        f'description: "parts of {split.whole}, cut {split.cut}; weights are {split.weights}"',
        "problems:",
    ]
    for part in split.parts:
        fault = f", excluded: {json.dumps(part.fault)}" if part.fault else ""
        lines.append(f"  {part.name}: {{weight: {part.weight:.4f}{fault}}}")
    return "\n".join(lines) + "\n"
