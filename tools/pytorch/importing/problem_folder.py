"""The folder of an imported problem: problem.yaml, graph, oracle, baselines, first kernel."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kopt.config.errors import ToolError
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.tools.pytorch.drawing import stored_name
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import FILE_NAME
from kopt.tools.pytorch.operators import refuse_foreign
from kopt.tools.pytorch.oracle import digest_of

from .folder_files import baseline_text, graph_text, oracle_text
from .handed_back import read_constant
from .probing import CheckBasis
from .problem_making import ProblemText, make_problem, problem_yaml
from .sizes_as_axes import SizedGraph


@dataclass(frozen=True)
class FilledFolder:
    """What was written of a problem."""

    problem: Problem
    launches: int | None
    """Of reference.cu; None where there is none."""
    warnings: tuple[str, ...]


def fill_folder(
    folder: Path, text: ProblemText, sized: SizedGraph, basis: CheckBasis
) -> FilledFolder:
    """Write the files of a problem into `folder`, which has its name.

    Raises:
        ToolError: The graph calls an operator that kopt does not interpret.
    """
    graph = sized.graph
    refuse_foreign(graph)
    problem = make_problem(sized, text, folder, sized.batch if basis.has_rows else None)
    (folder / "problem.yaml").write_text(problem_yaml(problem), "utf-8")
    (folder / FILE_NAME).write_text(graph_text(graph), "utf-8")
    digest = digest_of(folder / FILE_NAME)
    oracle = oracle_text(text.name, digest, text.precision, basis)
    (folder / "oracle.py").write_text(oracle, "utf-8")
    (folder / "baseline.py").write_text(baseline_text(text.name), "utf-8")
    load_problem(folder)
    try:
        code = emit_candidate(problem, graph)
    except ToolError as error:
        return FilledFolder(problem, None, (f"no reference.cu was written: {error}",))
    (folder / "reference.cu").write_text(code, "utf-8")
    return FilledFolder(problem, code.count("\n  - {kernel:"), ())


def take_constants(sized: SizedGraph, work: Path, folder: Path) -> None:
    """Write the constants of the graph into `folder`, whatever else the child left in `work`."""
    for given in sized.graph.inputs:
        if given.drawing.kind != "stored":
            continue
        for file in (stored_name(given.name, workload) for workload in ("", *sized.workloads)):
            take_array(work / file, folder / file)


def take_array(source: Path, target: Path) -> None:
    """Copy an array that the child left, if it did.

    Raises:
        ToolError: It is none that can be read without running code.
    """
    if os.path.lexists(source):
        np.save(target, read_constant(source), allow_pickle=False)
