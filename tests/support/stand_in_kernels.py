"""Exports of imported modules called without a GPU: the graph is interpreted for the kernel."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.config.callbacks import ignore
from kopt.kernels.candidate import read_candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.pytorch.graph import read_graph
from kopt.tools.pytorch.importing.child import export
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.stage import ImportRequest, write_problem
from kopt.tools.pytorch.interpreter import BoundGraph
from kopt.tools.pytorch.torch_library import Tensor, load_torch


def exported_import(root: Path, name: str, text: str) -> ExportedKernel:
    """Return the generated kernel of a PyTorch file, which becomes a problem below `root`."""
    source, work = root / f"{name}.py", root / f"{name}_work"
    source.write_text(text, "utf-8")
    work.mkdir()
    request = ExportRequest(source=str(source))
    found = export(request, work, ignore)
    place = root / "problems" / name
    write_problem(ImportRequest(request, place.parent, name), found, work, place)
    problem = load_problem(place)
    candidate = read_candidate(place / "reference.cu")
    return ExportedKernel(
        problem, problem.workloads[0], candidate, arch="sm_90a", origin="its first kernel"
    )


@dataclass(frozen=True)
class StandIn:
    """Writes what the graph of a problem gives for the other tensors into its outputs."""

    problem: Problem

    def __call__(self, *tensors: Tensor) -> None:
        """Take the problem's tensors in their order."""
        graph = read_graph(self.problem.folder)
        given = dict(zip((one.name for one in self.problem.tensors), tensors, strict=True))
        axes = {
            axis: length
            for one in self.problem.tensors
            for axis, length in zip(one.shape, given[one.name].shape, strict=True)
        }
        inputs = {
            one.name: given[one.name].double()
            if given[one.name].is_floating_point()
            else given[one.name]
            for one in graph.inputs
        }
        for one in self.problem.tensors:  # what the real binding refuses
            found = given[one.name]
            assert found.is_contiguous() and str(found.dtype) == f"torch.{one.dtype}", one.name
        for name, value in BoundGraph(graph, axes).run(inputs).items():
            given[name].copy_(value)


def registering(problem: Problem) -> Callable[..., None]:
    """Return what takes the place of torch's extension builder: it registers the stand-in."""

    def load(*, sources: list[str], **_: Any) -> None:
        text = Path(next(one for one in sources if "torch_binding" in one)).read_text("utf-8")
        begin = text.index("library.def(")
        schema = "".join(re.findall(r'"([^"]*)"', text[begin : text.index(");", begin)]))
        library = load_torch().library.Library("kopt", "FRAGMENT")
        library.define(schema)
        library.impl(problem.name, StandIn(problem), "CPU")
        KEPT.append(library)

    return load


KEPT: list[object] = []
"""A library is gone with its object."""
