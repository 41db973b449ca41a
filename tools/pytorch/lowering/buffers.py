"""Buffers, kernels and launches of a candidate that is being written."""

from dataclasses import dataclass
from typing import Literal

from kopt.kernels.problem import Layout

from .sizes import Shape, Size

BufferKind = Literal["in", "out", "inout", "scalar", "scratch"]
"""What a buffer is to the problem; a scalar is passed by value."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Global memory: a tensor of the problem, or a result that later kernels read."""

    label: str
    """The tensor's name, or the node's that it is a result of."""
    dtype: str
    shape: Shape
    """Row-major and without gaps, but for another `layout`."""
    kind: BufferKind
    is_static: bool = False
    """Whether no kernel of a model writes it: weights, which may be read before anything else."""
    layout: Layout = "row_major"


@dataclass(frozen=True)
class Use:
    """A parameter of a kernel: a pointer to a buffer."""

    buffer: Buffer
    parameter: str
    is_written: bool


@dataclass(frozen=True)
class Kernel:
    """A kernel with its one launch."""

    name: str
    comment: str
    text: str
    """Attributes in front of the name, and the statements."""
    uses: tuple[Use, ...]
    grid: str
    """Of the header."""
    block: str
    bounds: str = ""
    """`__launch_bounds__(...)`, where the block is known."""
    smem: str = "0"
    numbers: tuple[tuple[str, str], ...] = ()
    """Parameters of type int behind the pointers: the name, and the header's expression."""
    options: tuple[str, ...] = ()
    """Further keys of the launch, as the header has them."""


@dataclass(frozen=True)
class Grid:
    """How many threads a launch has."""

    blocks: str
    """In the header's expressions."""
    threads: str
    bounds: str = ""
    smem: str = "0"
    numbers: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


def per_element(count: Size) -> Grid:
    """Return the grid of a thread for each of `count` elements."""
    return Grid(f"ceil_div({count.header}, BLOCK)", "BLOCK")
