"""Extents, strides and counts as expressions over a problem's axes, never as one workload's number.

A `Size` has two spellings: that of the candidate's header and that of its CUDA code, where an axis
is the macro KOPT_<AXIS>. `SizeTable` compares sizes by their values at the problem's workloads and
at other row counts, which a check may draw.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from kopt.kernels.expressions import evaluate_expression
from kopt.kernels.problem import Problem, make_workload
from kopt.kernels.yaml_types import Mistake
from kopt.tools.pytorch.graph import AxisSize, ValueType

_OTHER_ROWS = (1, 2, 3, 7, 31, 160, 4_159)


@dataclass(frozen=True)
class Size:
    """An integer of a launch or of code."""

    header: str
    """In the header's expressions."""
    code: str
    """In CUDA code, where `Index` is an integer type that holds it."""
    literal: int | None = None
    """Its value where that is the same for every workload."""

    @property
    def is_atom(self) -> bool:
        """Whether it is one word or number, which needs no parentheses."""
        return " " not in self.header

    @property
    def factor(self) -> str:
        """The code as a factor of a product."""
        return self.code if self.is_atom else f"({self.code})"

    @property
    def wide(self) -> str:
        """The code in 64 bits, outside kernels, where there is no `Index`."""
        return self.code.replace("Index(", "op::Wide(")

    def __mul__(self, other: "Size") -> "Size":
        """Return the product."""
        if self.literal is not None and other.literal is not None:
            return literal(self.literal * other.literal)
        if 0 in (self.literal, other.literal):
            return literal(0)
        if self.literal == 1:
            return other
        if other.literal == 1:
            return self
        left = self.code if self.code.startswith("Index(") else f"Index({self.code})"
        return Size(f"{_factor(self.header)} * {_factor(other.header)}", f"{left} * {other.factor}")

    def __add__(self, other: "Size") -> "Size":
        """Return the sum."""
        if self.literal is not None and other.literal is not None:
            return literal(self.literal + other.literal)
        if self.literal == 0:
            return other
        if other.literal == 0:
            return self
        return Size(f"({self.header} + {other.header})", f"({self.code} + {other.code})")

    def __sub__(self, other: "Size") -> "Size":
        """Return the difference."""
        if self.literal is not None and other.literal is not None:
            return literal(self.literal - other.literal)
        if other.literal == 0:
            return self
        return Size(f"({self.header} - {_factor(other.header)})", f"({self.code} - {other.factor})")

    def __floordiv__(self, other: "Size") -> "Size":
        """Return the quotient of sizes that are not negative, rounded down."""
        if self.literal is not None and other.literal is not None:
            return literal(self.literal // other.literal)
        if other.literal == 1:
            return self
        return Size(
            f"({_factor(self.header)} // {_factor(other.header)})",
            f"({self.factor} / {other.factor})",
        )


def _factor(header: str) -> str:
    """Return an expression of the header that stands beside any operator."""
    return header if " " not in header or _is_wrapped(header) else f"({header})"


def _is_wrapped(text: str) -> bool:
    """Return whether the parenthesis that opens `text` is closed by its last character."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1 and place > 0
    return False


def literal(value: int) -> Size:
    """Return a size that no workload changes."""
    return Size(f"(0 - {-value})" if value < 0 else str(value), str(value), value)


ONE = literal(1)
PARTS = Size("PARTS", "PARTS")
"""Blocks that share one result of a reduction in two launches: a tune value."""
DEFAULT_PARTS = 64
Shape = tuple[Size, ...]


def size_of(value: int | AxisSize) -> Size:
    """Return an integer of a graph as a size."""
    if isinstance(value, AxisSize):
        return Size(value.axis, f"KOPT_{value.axis}")
    return literal(int(value))


def shape_of(value: ValueType) -> Shape:
    """Return the shape of a value of a graph."""
    return tuple(size_of(extent) for extent in value.shape)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product; 1 for none."""
    result = ONE
    for size in sizes:
        result = result * size
    return result


def ceil_div(size: Size, step: Size) -> Size:
    """Return how many steps cover `size`."""
    if size.literal is not None and step.literal is not None:
        return literal(-(-size.literal // step.literal))
    return Size(
        f"ceil_div({size.header}, {step.header})",
        f"(({size.code} + {step.factor} - 1) / {step.factor})",
    )


class SizeTable:
    """Values of sizes at the workloads of a problem, and at other row counts."""

    def __init__(self, problem: Problem) -> None:
        """Lay out the points at which sizes are compared."""
        self._workloads = [workload.axes for workload in problem.workloads]
        self._points: list[Mapping[str, int]] = list(self._workloads)
        row_axis = getattr(problem, "row_axis", None)
        if row_axis in problem.variable_axes:
            self._points += _other_rows(problem, row_axis)
        self._values: dict[str, tuple[int, ...]] = {}

    def values(self, size: Size) -> tuple[int, ...]:
        """Return its value at each point, the workloads first."""
        if size.header not in self._values:
            self._values[size.header] = tuple(
                evaluate_expression(size.header, {**point, PARTS.header: DEFAULT_PARTS})
                for point in self._points
            )
        return self._values[size.header]

    def equal(self, one: Size, other: Size) -> bool:
        """Return whether both are the same number at every point."""
        return one.header == other.header or self.values(one) == self.values(other)

    def same_shape(self, one: Shape, other: Shape) -> bool:
        """Return whether two shapes are equal at every point."""
        return len(one) == len(other) and all(map(self.equal, one, other))

    def largest(self, size: Size) -> int:
        """Return the largest value at a named workload."""
        return max(self.values(size)[: len(self._workloads)])

    def dominates(self, one: Size, other: Size) -> bool:
        """Return whether `one` is at least `other` at every point."""
        pairs = zip(self.values(one), self.values(other), strict=True)
        return all(left >= right for left, right in pairs)

    def elements(self, shape: Shape) -> int:
        """Return the elements of `shape` at the workload where there are most."""
        values = [self.values(size)[: len(self._workloads)] for size in shape]
        return max(prod(extents) for extents in zip(*values, strict=True)) if values else 1


def _other_rows(problem: Problem, row_axis: str) -> Iterable[Mapping[str, int]]:
    for workload in problem.workloads:
        given = {axis: workload.axes[axis] for axis in problem.variable_axes}
        for rows in _OTHER_ROWS:
            try:
                yield make_workload(problem, {**given, row_axis: rows}).axes
            except Mistake:
                continue
