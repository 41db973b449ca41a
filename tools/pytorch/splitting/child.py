"""The child that runs a network and records what it feeds its parts.

`python -m kopt.tools.pytorch.splitting.child FOLDER`: FOLDER has request.json. It leaves
answer.json and a folder for each part with the .npy files of constants and recorded inputs.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import KoptError, ToolError
from kopt.config.time_left import TimeLeft
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.tools.pytorch.drawing import rounded_to, sample_name, stored_name
from kopt.tools.pytorch.graph import FILE_NAME, Drawing, Graph, GraphInput, GraphOutput, Ref
from kopt.tools.pytorch.importing.exported import ANSWER, PROGRESS, REQUEST, ChildFailure
from kopt.tools.pytorch.importing.measuring import measure
from kopt.tools.pytorch.importing.probing import CheckBasis, Probe, probe
from kopt.tools.pytorch.importing.problem_making import ProblemText, make_problem
from kopt.tools.pytorch.interpreter import BoundGraph
from kopt.tools.pytorch.operators import refuse_foreign
from kopt.tools.pytorch.oracle import ImportedOracle
from kopt.tools.pytorch.torch_library import load_torch

from .regions import wire_of
from .request import PartRequest, RecordAnswer, RecordedPart, RecordRequest

RUNS = 3
"""Runs of the network, each with weights and inputs of its own."""
SAMPLES = 4
"""The most recorded values that a part keeps."""
SAMPLE_BYTES = 8 << 20
"""What all recorded values of one part may take."""

Array = npt.NDArray[Any]
Values = Mapping[str, Array]


def main(folder: Path) -> None:
    """Answer the request in `folder`."""
    request = RecordRequest.model_validate_json((folder / REQUEST).read_bytes())
    try:
        answer = RecordAnswer(parts=record(request, folder))
    except KoptError as error:
        answer = RecordAnswer(failure=ChildFailure.of(error))
    (folder / ANSWER).write_text(answer.model_dump_json(), "utf-8")


def record(request: RecordRequest, folder: Path) -> tuple[RecordedPart, ...]:
    """Return the parts with how their inputs are drawn, and by what each can be judged.

    Raises:
        ToolError: The network cannot be run.
        SetupError: torch is missing.
    """
    whole = load_problem(Path(request.folder))
    wires = {wire for part in request.parts for fed in part.fed for wire in fed.values()}
    runs: list[Values] = []
    pace = TimeLeft(RUNS)
    for seed in range(RUNS):
        place = f"{pace.place(seed + 1)}{pace.left(seed + 1)}"
        (folder / PROGRESS).write_text(f"running the network, {place}", "utf-8")
        runs.append(_values_in_a_run(whole, wires, seed))
    found: list[RecordedPart] = []
    pace = TimeLeft(len(request.parts))
    for number, part in enumerate(request.parts, 1):
        place = f"{pace.place(number)}{pace.left(number)}"
        text = f"finding out by what {part.name} can be judged, {place}"
        (folder / PROGRESS).write_text(text, "utf-8")
        inner = folder / part.name
        inner.mkdir()
        found.append(_recorded(part, whole, runs, inner))
    return tuple(found)


def _values_in_a_run(whole: Problem, wires: set[str], seed: int) -> Values:
    """Return the values of wires, in float64, integers or bools, at the shape that is checked."""
    torch = load_torch()
    oracle = ImportedOracle(whole.folder, precision=whole.precision)
    graph, workload = oracle.graph, whole.workloads[0]
    refuse_foreign(graph)
    inputs = oracle.make_inputs(workload, np.random.default_rng([seed, 11]), "normal")
    watched = {
        wire: ref
        for node in graph.nodes
        for place in range(len(node.results))
        if (wire := wire_of(ref := Ref(node=node.name, result=place))) in wires
    }
    watched |= {one.name: one.value for one in graph.outputs if one.name in wires}
    outputs = tuple(GraphOutput(name=name, value=ref) for name, ref in watched.items())
    given = {name: _plain(array) for name, array in inputs.items()}
    if not outputs:
        return given
    bound = BoundGraph(_with_outputs(graph, outputs), workload.axes)
    tensors = {name: torch.from_numpy(np.array(array, order="C")) for name, array in given.items()}
    with torch.no_grad():
        return given | {name: value.numpy() for name, value in bound.run(tensors).items()}


def _with_outputs(graph: Graph, outputs: tuple[GraphOutput, ...]) -> Graph:
    return graph.model_copy(update={"outputs": outputs})


def _plain(array: Array) -> Array:
    """Return floats of every kind as float64, which torch knows."""
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def _recorded(part: PartRequest, whole: Problem, runs: list[Values], folder: Path) -> RecordedPart:
    for here, there in part.tables.items():
        for workload in ("", *(one.name for one in whole.workloads)):
            file = whole.folder / stored_name(there, workload)
            if file.is_file():
                shutil.copyfile(file, folder / stored_name(here, workload))
    graph = part.sized.graph
    samples = _written_samples(part, runs, folder)
    inputs = tuple(
        one.model_copy(update={"drawing": _drawing(one, part, runs, samples)})
        if one.name in part.fed[0]
        else one
        for one in graph.inputs
    )
    sized = part.sized.model_copy(update={"graph": graph.model_copy(update={"inputs": inputs})})
    (folder / FILE_NAME).write_text(sized.graph.model_dump_json(), "utf-8")
    text = ProblemText(part.name, "", whole.precision)
    problem = make_problem(sized, text, folder, sized.batch)
    try:
        _refuse_infinite(part, runs)
        basis = probe(Probe(problem, folder, whole.precision))
    except ToolError as error:
        none = CheckBasis(regimes=("normal",), derived=(), tiny=1.0, huge=1.0, has_rows=False)
        return RecordedPart(sized=sized, basis=none, fault=str(error))
    return RecordedPart(sized=sized, basis=basis)


def _fed_values(part: PartRequest, runs: list[Values], name: str) -> list[Array]:
    """Return what regions feed an input: of each run, and of each of the equal regions."""
    return [values[fed[name]] for values in runs for fed in part.fed]


def _refuse_infinite(part: PartRequest, runs: list[Values]) -> None:
    for name in part.fed[0]:
        if not all(np.isfinite(one).all() for one in _fed_values(part, runs, name)):
            raise ToolError(f"the network feeds {name} values that are not finite")


def _drawing(given: GraphInput, part: PartRequest, runs: list[Values], samples: int) -> Drawing:
    """Return how an input is drawn: never as a constant, which only the checked shape has."""
    draws = _fed_values(part, runs, given.name)
    values = np.concatenate([one.reshape(-1) for one in draws]).astype(np.float64)
    finite = values[np.isfinite(values)]
    drawing = measure(given, draws)
    if drawing.kind == "stored" and finite.size:
        low, high = float(finite.min()), float(finite.max())
        kinds = {"b": "bools", "i": "integers", "u": "integers"}
        kind = kinds.get(draws[0].dtype.kind, "uniform")
        high = float(finite.mean()) if kind == "bools" else high
        drawing = Drawing.model_validate({"kind": kind, "low": low, "high": high})
    return drawing.model_copy(update={"samples": samples})


def _written_samples(part: PartRequest, runs: list[Values], folder: Path) -> int:
    """Write values that the network feeds, as many as there is room for; return how many."""
    types = {one.name: one.type.dtype for one in part.sized.graph.inputs}
    feeds = [(values, fed) for fed in part.fed for values in runs]
    step = max(len(feeds) // SAMPLES, 1)  # of regions at the beginning, in the middle, at the end
    chosen = feeds[::step][:SAMPLES]
    room = SAMPLE_BYTES
    count = 0
    for values, fed in chosen:
        arrays = {name: _as_stored(values[wire], types[name]) for name, wire in fed.items()}
        room -= sum(one.nbytes for one in arrays.values())
        if room < 0 or not arrays:
            break
        for name, array in arrays.items():
            np.save(folder / sample_name(name, count), array, allow_pickle=False)
        count += 1
    return count


def _as_stored(values: Array, dtype: str) -> Array:
    """Return values as numpy can store them: half precisions are rounded and kept in float32."""
    rounded = rounded_to(values, dtype) if values.dtype.kind == "f" else values
    return rounded.astype(np.float32) if dtype in ("bfloat16", "float16") else rounded


if __name__ == "__main__":
    main(Path(sys.argv[1]))
