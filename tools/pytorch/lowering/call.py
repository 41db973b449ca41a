"""One node while it is lowered: its arguments by place or name, as values, sizes and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from kopt.config.errors import UnsupportedOperator
from kopt.tools.pytorch.graph import Argument, AxisSize, Node, Ref, Special, ValueType

from .program import LoweredProgram
from .sizes import Shape, Size, SizeTable, literal, shape_of, size_of
from .values import Constant, Value

SPECIAL = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


@dataclass(frozen=True)
class Call:
    """An operator with what it is given."""

    node: Node
    program: LoweredProgram
    values: Mapping[tuple[str, int], Value]
    """By the node and the place of the result that they are."""
    read: frozenset[int] = frozenset()
    """The results that are needed."""

    @property
    def sizes(self) -> SizeTable:
        """How sizes compare."""
        return self.program.sizes

    @property
    def result(self) -> ValueType:
        """The type of the first result."""
        return self.result_at(0)

    @property
    def dtype(self) -> str:
        """The dtype of the first result."""
        return self.result.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        return shape_of(self.result)

    def result_at(self, place: int) -> ValueType:
        """Return the type of a result that exists."""
        found = self.node.results[place]
        if found is None:
            raise self.refusal(f"has no result {place}")
        return found

    def is_read(self, place: int) -> bool:
        """Return whether a result is needed."""
        return place in self.read

    def argument(self, place: int, name: str = "", default: Argument = None) -> Argument:
        """Return an argument by place, or by name, or its default."""
        if place < len(self.node.args):
            return self.node.args[place]
        return self.node.kwargs.get(name, default)

    def value(self, place: int, name: str = "") -> Value:
        """Return a tensor argument; a number stands for a tensor of one element."""
        found = self.optional(place, name)
        if found is None:
            raise self.refusal(f"needs a tensor as argument {place + 1}")
        return found

    def optional(self, place: int, name: str = "") -> Value | None:
        """Return a tensor argument, or None."""
        given = self.argument(place, name)
        return None if given is None else self.as_value(given)

    def as_value(self, given: Argument) -> Value:
        """Return an argument as a value."""
        if isinstance(given, Ref):
            return self.values[given.node, given.result]
        if isinstance(given, Special):
            return Constant(SPECIAL[given.special], "float32")
        if isinstance(given, AxisSize):
            return Constant(size_of(given), "int64")
        if isinstance(given, bool):
            return Constant(given, "bool")
        if isinstance(given, int):
            return Constant(given, "int64")
        if isinstance(given, float):
            return Constant(given, "float32")
        return self.refuse(f"cannot take {given!r} for a tensor")

    def value_list(self, place: int) -> tuple[Value, ...]:
        """Return a list of tensors."""
        given = self.argument(place)
        entries = given if isinstance(given, tuple) else ()
        return tuple(self.as_value(one) for one in entries)

    def number(self, place: int, name: str = "", default: float = 0.0) -> float:
        """Return a number."""
        given = self.argument(place, name, default)
        if isinstance(given, Special):
            return SPECIAL[given.special]
        if isinstance(given, int | float):
            return given
        return self.refuse(f"needs a number for {name or place}, got {given!r}")

    def flag(self, place: int, name: str = "", default: bool = False) -> bool:
        """Return a truth value."""
        return bool(self.argument(place, name, default))

    def integer(self, place: int, name: str = "", default: int = 0) -> int:
        """Return an integer that no workload changes."""
        given = self.argument(place, name, default)
        if isinstance(given, int):
            return int(given)
        return self.refuse(f"needs one integer for {name or place}, got {given!r}")

    def size(self, place: int, name: str = "", default: int = 0) -> Size:
        """Return an integer that may be the value of an axis."""
        given = self.argument(place, name, default)
        if isinstance(given, int | AxisSize):
            return size_of(given)
        return self.refuse(f"needs an integer for {name or place}, got {given!r}")

    def size_list(self, place: int, count: int, default: int = 0) -> tuple[Size, ...]:
        """Return `count` integers; one stands for all, none for the default."""
        given = self.argument(place)
        entries = given if isinstance(given, tuple) else (() if given is None else (given,))
        found = tuple(size_of(one) for one in entries if isinstance(one, int | AxisSize))
        if not found:
            return (literal(default),) * count
        return found * count if len(found) == 1 else found

    def dims(self, place: int, rank: int, name: str = "") -> tuple[int, ...]:
        """Return dimensions in rising order; all for an empty list or none."""
        given = self.argument(place, name)
        entries = given if isinstance(given, tuple) else (() if given is None else (given,))
        if any(isinstance(one, AxisSize) for one in entries):
            raise self.refusal("works on other dimensions in other workloads")
        found = {int(one) % rank for one in entries if isinstance(one, int) and rank}
        return tuple(sorted(found)) or tuple(range(rank))

    def dim(self, place: int, rank: int, name: str = "dim", default: int = 0) -> int:
        """Return one dimension, counted from the first."""
        return self.integer(place, name, default) % max(rank, 1)

    def refusal(self, why: str) -> UnsupportedOperator:
        """Return the error of an operator that cannot be lowered."""
        where = self.node.source or self.node.name
        return UnsupportedOperator(f"{self.node.op} {why} ({where})")

    def refuse(self, why: str) -> NoReturn:
        """Raise the error of an operator that cannot be lowered."""
        raise self.refusal(why)
