"""Graphs of a few operators by hand, their oracle in a folder, what the gates say of results."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import Expected
from kopt.kernels.problem import Problem, TensorSpec, Workload
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judge import judge
from kopt.tools.check.output import Output
from kopt.tools.check.reference import make_reference
from kopt.tools.pytorch.graph import (
    FILE_NAME,
    Argument,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Node,
    Ref,
    ValueType,
)
from kopt.tools.pytorch.oracle import ImportedOracle

Array = npt.NDArray[Any]


def node(
    name: str, op: str, args: tuple[Argument, ...], shape: tuple[int, ...], dtype: str = "float32"
) -> Node:
    """Return a node with one result."""
    return Node(name=name, op=op, args=args, results=(ValueType(dtype=dtype, shape=shape),))


@dataclass(frozen=True)
class Imported:
    """A graph in a folder."""

    folder: Path
    graph: Graph

    @classmethod
    def of(
        cls, folder: Path, inputs: Mapping[str, Array], *nodes: Node, dtype: str = "float32"
    ) -> "Imported":
        """Return the graph of `nodes`, whose last one is the output `out`."""
        given = tuple(
            GraphInput(
                name=name,
                kind="input",
                type=ValueType(dtype=_dtype(array, dtype), shape=array.shape),
                drawing=Drawing(kind="normal"),
            )
            for name, array in inputs.items()
        )
        outputs = (GraphOutput(name="out", value=Ref(node=nodes[-1].name)),)
        graph = Graph(torch="2.13.0", inputs=given, nodes=nodes, outputs=outputs)
        (folder / FILE_NAME).write_text(graph.model_dump_json(), "utf-8")
        return cls(folder, graph)

    def expected(self, inputs: Mapping[str, Array], precision: str = "ieee") -> Expected:
        """Return what the output must be."""
        oracle = ImportedOracle(self.folder, precision=precision)
        return oracle.expected(dict(inputs), {})["out"]

    def refused(self, expected: Expected, got: Array) -> str | None:
        """Return the gate that refuses `got`; None where it is accepted."""
        dtype = self.graph.nodes[-1].results[0]
        assert dtype is not None
        shape = expected.exact.shape
        axes = {f"A{place}": size for place, size in enumerate(shape)} | {"B": 1}
        problem = Problem(
            name="imported",
            op_type="pytorch",
            description="",
            axes=dict.fromkeys(axes),
            tensors=(
                TensorSpec(
                    name="out",
                    role="out",
                    dtype=dtype.dtype,
                    shape=tuple(f"A{n}" for n in range(len(shape))),
                ),
            ),
            row_axis="A0" if len(shape) > 1 else "B",
            workloads=(Workload(name="w", axes=axes),),
            folder=self.folder,
        )
        reference = make_reference(problem, "out", expected)
        finding = judge(CaseData({}, {"out": reference}), {"out": got}, 0).finding
        return None if finding is None else finding.gate


def _dtype(array: Array, dtype: str) -> str:
    if array.dtype.kind in "fV":
        return dtype
    return str(array.dtype)


def use_of_budget(expected: Expected, got: Array) -> float:
    """Return the largest error in units of an element's slack."""
    assert expected.slack is not None
    error = np.abs(got.astype(np.float64) - expected.exact)
    return float(np.max(error / np.maximum(expected.slack, 1e-300)))


__all__ = ["Imported", "Output", "node", "use_of_budget"]
