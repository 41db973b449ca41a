"""Graphs of one function at two shapes made one: which sizes become which axes."""

import pytest

from kopt.config.errors import ToolError
from kopt.tools.pytorch.graph import (
    Argument,
    AxisSize,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Ref,
    ValueType,
)
from kopt.tools.pytorch.importing.sizes_as_axes import Measured, SizedGraph, with_axes
from support.imported_graphs import node


def _linear(batch: int, inside: int, outside: int, scale: float = 0.5) -> Graph:
    """Return x @ w, seen as one row, times a number."""

    def given(name: str, *shape: int) -> GraphInput:
        return GraphInput(
            name=name,
            kind="input" if name == "x" else "parameter",
            type=ValueType(dtype="float32", shape=shape),
            drawing=Drawing(kind="normal"),
        )

    flat: tuple[Argument, ...] = (Ref(node="m"), (batch * outside,))
    return Graph(
        torch="2.13.0",
        inputs=(given("w", inside, outside), given("x", batch, inside)),
        nodes=(
            node("m", "aten.mm.default", (Ref(node="x"), Ref(node="w")), (batch, outside)),
            node("v", "aten.view.default", flat, (batch * outside,)),
            node("s", "aten.mul.Tensor", (Ref(node="v"), scale), (batch * outside,)),
        ),
        outputs=(GraphOutput(name="out", value=Ref(node="s")),),
    )


def _sized(small: Graph, official: Graph, batch: int) -> SizedGraph:
    return with_axes(
        [Measured(workload="small", graph=small), Measured(workload="official", graph=official)],
        batch,
    )


def test_sizes_that_differ_are_axes_named_after_the_inputs() -> None:
    sized = _sized(_linear(6, 16, 7), _linear(64, 256, 7), 6)
    shapes = {one.name: one.type.shape for one in sized.graph.inputs}
    assert shapes["x"] == (AxisSize(axis="B"), AxisSize(axis="C"))
    assert shapes["w"] == (AxisSize(axis="C"), 7)
    assert sized.batch == "B"


def test_what_follows_from_other_axes_is_an_expression() -> None:
    sized = _sized(_linear(6, 16, 8), _linear(64, 256, 24), 6)
    assert sized.axes == {"B": None, "C": None, "N1": None, "N2": "B * N1"}
    assert sized.workloads["small"] == {"B": 6, "C": 16, "N1": 8, "N2": 48}
    assert sized.workloads["official"]["N2"] == 64 * 24


def test_arguments_follow_the_axes() -> None:
    sized = _sized(_linear(6, 16, 7), _linear(64, 256, 7), 6)
    assert sized.graph.node("v").args[1] == (AxisSize(axis="N1"),)
    assert sized.axes["N1"] == "B * 7"


def test_equal_sizes_of_weights_and_batch_share_no_rows() -> None:
    sized = _sized(_linear(6, 6, 7), _linear(64, 64, 7), 6)
    assert sized.batch is None


def test_one_shape_still_has_a_batch_to_vary() -> None:
    sized = with_axes([Measured(workload="official", graph=_linear(6, 16, 7))], 6)
    assert sized.axes == {"B": None}
    assert sized.workloads == {"official": {"B": 6}}


def test_a_number_that_depends_on_a_size_is_refused() -> None:
    with pytest.raises(ToolError, match=r"aten\.mul\.Tensor takes 0\.25, 0\.5 .*--small"):
        _sized(_linear(6, 16, 7, scale=0.25), _linear(64, 256, 7, scale=0.5), 6)
