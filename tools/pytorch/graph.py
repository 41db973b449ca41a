"""A PyTorch function as data: the graph that torch.export gives, without torch.

`graph.json` beside the problem.yaml of an imported function is one `Graph`. Three readers take it:
the oracle interprets it in float64, the emitter lowers it to CUDA, and `kopt split` cuts it into
regions. Nobody has to run the user's Python again.

Nodes are core ATen operators in the order of their execution. Sizes that differ between workloads
are names of the problem's axes; what is equal in all of them is a plain integer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kopt.config.errors import ToolError
from kopt.kernels.record import Record

FILE_NAME = "graph.json"


Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,255}$")]
"""It stands in CUDA text and in names of files."""


class Ref(Record):
    """A value: an input of the graph, or a result of an earlier node."""

    node: str
    """Name of a `GraphInput` or of a `Node`."""
    result: int = 0
    """Which result of an operator that has several."""


class AxisSize(Record):
    """An integer that is the value of one of the problem's axes."""

    axis: Name


class Special(Record):
    """A floating-point number that JSON has no word for."""

    special: Literal["inf", "-inf", "nan"]


Size = int | AxisSize
Atom = Ref | AxisSize | Special | bool | int | float | str | None
Argument = Atom | tuple[Atom, ...]
"""An operator's argument. A dtype is its name without `torch.`; memory formats and devices are left
out."""


class ValueType(Record):
    """What a value is."""

    dtype: str
    """torch's name: float32, bfloat16, int64, bool ..."""
    shape: tuple[Size, ...]
    """Outermost first; () is one element."""


class Drawing(Record):
    """How an input is drawn for each seed, measured on what the user's own code gave."""

    kind: Literal["normal", "uniform", "integers", "bools", "stored"]
    """`stored`: the values of the `.npy` file called after the input, which are part of the
    function: tables, masks, positions."""
    mean: float = 0.0
    deviation: float = 1.0
    """The standard deviation of `normal`."""
    low: float = 0.0
    high: float = 1.0
    """Bounds of `uniform`, both of `integers` included; of `bools`, high is the share of True."""
    below: Size | None = None
    """Of `integers`, one more than the largest where that is a size: they index something."""
    per_fan_in: bool = False
    """True for weights that are initialised within 1 / sqrt(fan-in): what is drawn is divided by
    the square root of the product of all sizes but the first."""
    was_constant: bool = False
    """True for a parameter that is initialised with one value (the ones of a norm's weight): it is
    drawn with a spread around it, so that no kernel may leave it out."""
    samples: int = 0
    """Values that a network really feeds it, in as many files `NAME.sampleN.npy`: `normal` inputs
    are one of them, at the shape that they have."""


class GraphInput(Record):
    """A tensor that the function reads: an argument, a parameter, a buffer or a constant."""

    name: Name
    """Name of the problem's tensor."""
    kind: Literal["input", "parameter", "buffer", "constant"]
    type: ValueType
    drawing: Drawing
    path: str = ""
    """Key in the module's state_dict, of parameters and buffers."""


class Node(Record):
    """One operator of the graph."""

    name: Name
    """Unique in the graph; a-z, 0-9 and _, a letter first."""
    op: str
    """torch's full name: `aten.addmm.default`."""
    args: tuple[Argument, ...] = ()
    kwargs: dict[str, Argument] = Field(default_factory=dict[str, Argument])
    results: tuple[ValueType | None, ...]
    """None for a result that does not exist."""
    source: str = ""
    """The user's line, such as `model.py:23: x = self.linear(x)`."""
    module: str = ""
    """Path of the nn.Module that calls it, such as `layers.0.linear`; empty for the outermost."""


class GraphOutput(Record):
    """A tensor that the function returns."""

    name: str
    """Name of the problem's tensor."""
    value: Ref


class Graph(Record):
    """A function."""

    format: Literal["kopt.graph/1"] = "kopt.graph/1"
    torch: str
    """Version that exported it."""
    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: Annotated[tuple[GraphOutput, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        known = {given.name for given in self.inputs}
        if len(known) < len(self.inputs):
            raise ValueError("two inputs have one name")
        for node in self.nodes:
            for ref in refs(node):
                if ref.node not in known:
                    raise ValueError(f"{node.name} reads {ref.node}, which no earlier node makes")
            if node.name in known:
                raise ValueError(f"two values are called {node.name}")
            known.add(node.name)
        for output in self.outputs:
            if output.value.node not in known:
                raise ValueError(f"nothing makes {output.value.node}, the output {output.name}")
        return self

    def node(self, name: str) -> Node:
        """Return the node called `name`; KeyError if there is none."""
        return {node.name: node for node in self.nodes}[name]

    def type_of(self, ref: Ref) -> ValueType:
        """Return the type of a value; KeyError if nothing makes it."""
        for given in self.inputs:
            if given.name == ref.node:
                return given.type
        found = self.node(ref.node).results[ref.result]
        if found is None:
            raise KeyError(f"{ref.node} has no result {ref.result}")
        return found


def refs(node: Node) -> Iterator[Ref]:
    """Yield each value that `node` reads, as often as it does."""
    yield from _refs_in((*node.args, *node.kwargs.values()))


def needed_nodes(nodes: Sequence[Node], outputs: Sequence[GraphOutput]) -> list[Node]:
    """Return the nodes that the outputs depend on, in order; updates of buffers are left out."""
    wanted = {output.value.node for output in outputs}
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.name in wanted:
            kept.append(node)
            wanted.update(ref.node for ref in refs(node))
    return kept[::-1]


def _refs_in(arguments: tuple[Argument, ...]) -> Iterator[Ref]:
    for argument in arguments:
        if isinstance(argument, Ref):
            yield argument
        elif isinstance(argument, tuple):
            yield from _refs_in(argument)


def read_graph(folder: Path, name: str = FILE_NAME) -> Graph:
    """Return the graph of the problem in `folder`: of the file called `name`.

    Raises:
        ToolError: There is none, or it is damaged.
    """
    path = folder / name
    try:
        return Graph.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ToolError(
            f"{path} is damaged: {error}; write it anew, an imported function by importing it again"
        ) from error
