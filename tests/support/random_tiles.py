"""Random pointwise functions with several outputs of different shapes, and what NumPy gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.tools.pytorch.graph import Argument, AxisSize, Graph, Node, Ref, Size, ValueType
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, value_type

Array = npt.NDArray[Any]
HEADS = AxisSize(axis="H")
POSITIONS = 12
_TOLERANCE = {"float32": 1e-5, "bfloat16": 2**-8, "float16": 2**-10}
"""Relative: some roundings, or half a unit in the last place, twice."""
_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg.default": np.negative,
    "relu.default": lambda x: np.maximum(x, 0),
    "sigmoid.default": lambda x: 1 / (1 + np.exp(-x)),
}
_Step = tuple[str, Callable[..., Array], tuple[str, ...]]


@dataclass(frozen=True)
class TileFunction:
    """A function of x (rows, columns), w (columns), y (rows, heads, width) and a table by `ids`."""

    graph: Graph
    steps: tuple[_Step, ...]

    def inputs(self, axes: Mapping[str, int], rng: np.random.Generator) -> dict[str, Array]:
        """Return normal inputs, and indices into the table, of the shapes that `axes` say."""
        found: dict[str, Array] = {}
        for one in self.graph.inputs:
            extents = [
                axes[size.axis] if isinstance(size, AxisSize) else size for size in one.type.shape
            ]
            if one.name == "ids":
                found[one.name] = rng.integers(0, POSITIONS, extents).astype(np.int32)
            else:
                drawn = rng.standard_normal(extents)
                found[one.name] = drawn.astype(numpy_dtype(one.type.dtype))
        return found

    def wrong(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> list[str]:
        """Return the outputs that are not what `inputs` give."""
        values = {
            name: array if name == "ids" else array.astype(np.float64)
            for name, array in inputs.items()
        }
        for name, function, read in self.steps:
            values[name] = function(*(values[one] for one in read))
        found: list[str] = []
        for one in self.graph.outputs:
            dtype = self.graph.type_of(one.value).dtype
            given = outputs[one.name].view(numpy_dtype(dtype)).astype(np.float64)
            wanted = values[one.value.node]
            if not np.allclose(given, wanted, rtol=_TOLERANCE[dtype], atol=2**-9):
                found.append(f"{one.name} is off by up to {np.nanmax(np.abs(given - wanted))}")
        return found


@dataclass
class _Writing:
    rng: Random
    width: int
    """The last dimension of y and of the table is this even number."""
    nodes: list[Node] = field(default_factory=list[Node])
    steps: list[_Step] = field(default_factory=list[_Step])

    def add(
        self, op: str, function: Callable[..., Array], args: tuple[Argument, ...], to: ValueType
    ) -> str:
        """Add an operator and return its name."""
        name = f"n{len(self.nodes)}"
        kwargs: dict[str, Argument] = {"dtype": to.dtype} if op == "_to_copy.default" else {}
        node = Node(name=name, op=f"aten.{op}", args=args, kwargs=kwargs, results=(to,))
        self.nodes.append(node)
        self.steps.append((name, function, tuple(_read(args))))
        return name

    def cast(self, name: str, shape: tuple[Size, ...], *dtypes: str) -> str:
        """Return the name of a value in one of some dtypes."""
        to = value_type(*shape, dtype=self.rng.choice(dtypes))
        return self.add("_to_copy.default", np.asarray, (Ref(node=name),), to)

    def both(self, op: str, function: Callable[..., Array], one: str, other: str) -> str:
        """Return the name of an operator of two values of half the width."""
        to = value_type(ROWS, HEADS, self.width // 2)
        return self.add(op, function, (Ref(node=one), Ref(node=other)), to)

    def half(self, name: str, shape: tuple[Size, ...], start: int) -> str:
        """Return the name of one half along the last dimension."""
        end = start + self.width // 2
        to = value_type(*shape, self.width // 2)
        args = (Ref(node=name), len(shape), start, end)

        def cut(x: Array) -> Array:
            return x[..., start:end]

        return self.add("slice.Tensor", cut, args, to)

    def gathered(self) -> str:
        """Return the name of the rows of the table that `ids` names, for each head."""
        flat = value_type(ROWS, self.width)
        rows = self.add("index.Tensor", _chosen, (Ref(node="t"), (Ref(node="ids"),)), flat)
        to = value_type(ROWS, 1, self.width)
        return self.add("unsqueeze.default", _for_each_head, (Ref(node=rows), 1), to)

    def rotated(self, values: str) -> str:
        """Return the name of y, its halves rotated by the angles of each row."""
        at, middle = self.gathered(), self.width // 2
        cosine, sine = (self.half(at, (ROWS, 1), start) for start in (0, middle))
        one, two = (self.half(values, (ROWS, HEADS), start) for start in (0, middle))
        parts = [
            self.both(
                op,
                function,
                self.both("mul.Tensor", np.multiply, first, cosine),
                self.both("mul.Tensor", np.multiply, second, sine),
            )
            for op, function, first, second in (
                ("sub.Tensor", np.subtract, one, two),
                ("add.Tensor", np.add, two, one),
            )
        ]
        return self.add(
            "cat.default",
            _side_by_side,
            (tuple(Ref(node=one) for one in parts), 2),
            value_type(ROWS, HEADS, self.width),
        )


def _chosen(table: Array, ids: Array) -> Array:
    return np.take(table, ids, 0)


def _for_each_head(x: Array) -> Array:
    return np.expand_dims(x, 1)


def _side_by_side(*both: Array) -> Array:
    return np.concatenate(both, -1)


def _read(args: tuple[Argument, ...]) -> list[str]:
    found: list[str] = []
    for one in args:
        found += (
            [one.node] if isinstance(one, Ref) else _read(one) if isinstance(one, tuple) else []
        )
    return found


def random_tiles(rng: Random) -> TileFunction:
    """Return a function with an output like x, one like y, and perhaps another like x."""
    width = rng.choice((6, 8, 16, 24, 64))
    made = _Writing(rng, width)
    matrix, heads = (ROWS, COLUMNS), (ROWS, HEADS, width)
    inputs = {
        "x": value_type(*matrix, dtype=rng.choice(("float32", "bfloat16"))),
        "w": value_type(COLUMNS),
        "y": value_type(*heads, dtype=rng.choice(("float32", "bfloat16"))),
        "t": value_type(POSITIONS, width),
        "ids": value_type(ROWS, dtype="int32"),
    }
    x, y = made.cast("x", matrix, "float32"), made.cast("y", heads, "float32")
    outputs: list[str] = []
    for _ in range(rng.randint(1, 2)):
        op, unary = rng.choice(list(_UNARY.items()))
        flat = made.add(op, unary, (Ref(node=x),), value_type(*matrix))
        args = (Ref(node=flat), Ref(node="w"))
        x = made.add("mul.Tensor", np.multiply, args, value_type(*matrix))
        outputs.append(made.cast(x, matrix, "float32", "bfloat16", "float16"))
    if rng.random() < 0.7:
        wide = made.rotated(y)
    else:
        args = (Ref(node=y), Ref(node=made.gathered()))
        wide = made.add("add.Tensor", np.add, args, value_type(*heads))
    if rng.random() < 0.5:
        wide = made.add("neg.default", np.negative, (Ref(node=wide),), value_type(*heads))
    outputs.append(made.cast(wide, heads, "float32", "bfloat16", "float16"))
    rng.shuffle(outputs)
    graph = graph_of(inputs, made.nodes, *(Ref(node=one) for one in outputs))
    return TileFunction(graph, tuple(made.steps))
