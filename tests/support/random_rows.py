"""Random functions of the rows of a matrix: the graph, and what NumPy gives for it in float64."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, in_place, value_type

Array = npt.NDArray[Any]
MATRIX, NUMBERS, VECTOR = value_type(ROWS, COLUMNS), value_type(ROWS, 1), value_type(COLUMNS)
_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg.default": np.negative,
    "relu.default": lambda x: np.maximum(x, 0),
    "sigmoid.default": lambda x: 1 / (1 + np.exp(-x)),
    "tanh.default": np.tanh,
    "abs.default": np.abs,
}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add.Tensor": np.add,
    "mul.Tensor": np.multiply,
    "maximum.default": np.maximum,
}
_REDUCED: dict[str, Callable[[Array], Array]] = {
    "mean.dim": lambda x: x.mean(1, keepdims=True),
    "amax.default": lambda x: x.max(1, keepdims=True),
    "amin.default": lambda x: x.min(1, keepdims=True),
    "var.correction": lambda x: x.var(1, ddof=1, keepdims=True),
}
_TOLERANCE = {"float32": 1e-4, "bfloat16": 2**-8}
"""Relative: the order of additions, approximate functions; half a unit in the last place, twice."""


def _plus_one(x: Array) -> Array:
    more: Array = x + 1
    return more


@dataclass(frozen=True)
class RowFunction:
    """A function of x (rows, columns), s (rows, 1) and w (columns)."""

    graph: Graph
    compute: Callable[[Mapping[str, Array]], dict[str, Array]]
    """From inputs to outputs in float64."""

    def inputs(self, axes: Mapping[str, int], rng: np.random.Generator) -> dict[str, Array]:
        """Return normal inputs of the shapes that `axes` say."""
        shapes = {"x": (axes["B"], axes["N"]), "s": (axes["B"], 1), "w": (axes["N"],)}
        return {
            one.name: rng.standard_normal(shapes[one.name]).astype(numpy_dtype(one.type.dtype))
            for one in self.graph.inputs
        }

    def wrong(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> list[str]:
        """Return the outputs that are not what `inputs` give."""
        wanted = self.compute(inputs)
        found: list[str] = []
        for one in self.graph.outputs:
            given = outputs[one.name].astype(np.float64)
            rtol = _TOLERANCE.get(self.graph.type_of(one.value).dtype, 0.0)
            if not np.allclose(given, wanted[one.name], rtol=rtol, atol=1e-4):
                worst = np.nanmax(np.abs(given - wanted[one.name]))
                found.append(f"{one.name} is off by up to {worst}")
        return found


@dataclass
class _Steps:
    """A function while it is written."""

    rng: Random
    nodes: list[Node] = field(default_factory=list[Node])
    steps: list[tuple[str, Callable[..., Array], tuple[str, ...]]] = field(
        default_factory=list[tuple[str, Callable[..., Array], tuple[str, ...]]]
    )

    def add(
        self,
        op: str,
        function: Callable[..., Array],
        read: Sequence[str],
        *rest: Argument,
        to: ValueType = MATRIX,
        **kwargs: Argument,
    ) -> str:
        """Add an operator and return its name."""
        name = f"n{len(self.nodes)}"
        args = (*(Ref(node=one) for one in read), *rest)
        self.nodes.append(Node(name=name, op=f"aten.{op}", args=args, kwargs=kwargs, results=(to,)))
        self.steps.append((name, function, tuple(read)))
        return name

    def cast(self, name: str, dtype: str, to: ValueType = MATRIX) -> str:
        """Return the name of a value in another dtype."""
        kind = to.model_copy(update={"dtype": dtype})
        return self.add("_to_copy.default", np.asarray, [name], to=kind, dtype=dtype)

    def reduced(self, name: str) -> str:
        """Return the name of a number for each row."""
        op, function = self.rng.choice(list(_REDUCED.items()))
        return self.add(op, function, [name], (1,), to=NUMBERS, keepdim=True)

    def at_least_one(self, name: str) -> str:
        """Return the name of 1 + |value|, which anything can be divided by."""
        size = self.add("abs.default", np.abs, [name], to=NUMBERS)
        return self.add("add.Tensor", _plus_one, [size], 1, to=NUMBERS)


def random_function(rng: Random, *, reduces: bool, overwrites: bool = False) -> RowFunction:
    """Return a function: steps by element and by row, as they come.

    Args:
        rng: What is drawn from.
        reduces: Whether a number of a row is computed from all its elements.
        overwrites: Whether the first output is stored where x was.
    """
    dtypes = {name: rng.choice(("float32", "bfloat16")) for name in ("x", "w")}
    kinds = {"x": MATRIX, "s": NUMBERS, "w": VECTOR}
    inputs = {
        name: kind.model_copy(update={"dtype": dtypes.get(name, "float32")})
        for name, kind in kinds.items()
    }
    made = _Steps(rng)
    by_name = {
        name: name if dtype == "float32" else made.cast(name, "float32", kinds[name])
        for name, dtype in dtypes.items()
    }
    wide, narrow = [by_name["x"]], ["s"]
    if reduces:
        narrow.append(made.reduced(wide[0]))
    for _ in range(rng.randint(2, 8)):
        steps = ("unary", "binary", "binary", "divided", *(["reduced", "scaled"] * reduces))
        kind = rng.choice(steps)
        one = rng.choice(wide)
        if kind == "reduced":
            narrow.append(made.reduced(one))
        elif kind == "scaled":  # as a norm with its weight
            scaled = made.add("mul.Tensor", np.multiply, [one, narrow[-1]])
            wide.append(made.add("mul.Tensor", np.multiply, [scaled, by_name["w"]]))
        elif kind == "divided":
            divisor = made.at_least_one(rng.choice(narrow))
            wide.append(made.add("div.Tensor", np.divide, [one, divisor]))
        elif kind == "unary":
            op, unary = rng.choice(list(_UNARY.items()))
            wide.append(made.add(op, unary, [one]))
        else:
            op, binary = rng.choice(list(_BINARY.items()))
            other = rng.choice([*wide, *narrow, by_name["w"]])
            wide.append(made.add(op, binary, [one, other]))
    if len(wide) == 1:
        wide.append(made.add("neg.default", np.negative, wide))
    first = dtypes["x"] if overwrites else rng.choice(("float32", "bfloat16"))
    outputs = [wide[-1] if first == "float32" else made.cast(wide[-1], first)]
    if len(wide) > 2 and rng.random() < 0.3:
        outputs.append(made.cast(wide[1], "bfloat16"))
    outputs += narrow[1:][-1:]
    graph = graph_of(inputs, made.nodes, *(Ref(node=one) for one in outputs))
    return _function(in_place(graph, out0="x") if overwrites else graph, made.steps)


def _function(
    graph: Graph, steps: Sequence[tuple[str, Callable[..., Array], tuple[str, ...]]]
) -> RowFunction:
    def compute(given: Mapping[str, Array]) -> dict[str, Array]:
        values = {name: array.astype(np.float64) for name, array in given.items()}
        for name, function, read in steps:
            values[name] = function(*(values[one] for one in read))
        return {one.name: values[one.value.node] for one in graph.outputs}

    return RowFunction(graph, compute)
