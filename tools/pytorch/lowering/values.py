"""Values that are not in memory yet: index expressions, inlined into the kernel that reads them.

A value knows its shape and dtype and writes, into the body of a kernel, the code of one element.
Only what `kernels` of a `LoweredProgram` store is ever in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .body import Body
from .buffers import Buffer
from .cuda_types import cast, computed, number
from .sizes import Shape, Size, SizeTable

Index = tuple[str, ...]
"""A name or a number for each dimension, outermost first."""


class Value(Protocol):
    """A tensor of which any element can be computed."""

    @property
    def shape(self) -> Shape:
        """Outermost first."""
        ...

    @property
    def dtype(self) -> str:
        """The name that torch gives it."""
        ...

    @property
    def cost(self) -> int:
        """Loads and operations of one element, roughly."""
        ...

    @property
    def sources(self) -> frozenset[Buffer]:
        """The buffers that an element may be read from."""
        ...

    def at(self, body: Body, index: Index) -> str:
        """Return the name of the element at `index`, in the C++ type `computed(dtype)`."""
        ...


class _Coded(Protocol):
    @property
    def dtype(self) -> str: ...

    def code(self, body: Body, index: Index) -> str: ...


class _Named:
    """Gives a value's code a name, once for each index in a scope."""

    def at(self: _Coded, body: Body, index: Index) -> str:
        """Return the name of the element at `index`, in the C++ type `computed(dtype)`."""
        key = (id(self), index)
        known = body.known(key)
        if known is None:
            known = body.let(computed(self.dtype), self.code(body, index))
            body.remember(key, known)
        return known


@dataclass(frozen=True, eq=False)
class Stored(_Named):
    """A buffer."""

    buffer: Buffer
    shape: Shape
    """Of as many elements as the buffer's own."""
    cost: int = 1

    @property
    def dtype(self) -> str:
        """The buffer's."""
        return self.buffer.dtype

    def code(self, body: Body, index: Index) -> str:
        """Return a load."""
        position = body.position(index, self.shape)
        return body.element(self.buffer, position)

    @property
    def sources(self) -> frozenset[Buffer]:
        """The buffer."""
        return frozenset((self.buffer,))


@dataclass(frozen=True, eq=False)
class Constant(_Named):
    """One number everywhere."""

    value: float | int | bool | Size
    """A size is a number that workloads change."""
    dtype: str
    shape: Shape = ()
    cost: int = 0

    def code(self, body: Body, index: Index) -> str:
        """Return the number."""
        del body, index
        ctype = computed(self.dtype)
        if isinstance(self.value, Size):
            return f"static_cast<{ctype}>({self.value.code})"
        return number(self.value, ctype)

    @property
    def sources(self) -> frozenset[Buffer]:
        """None."""
        return frozenset()


@dataclass(frozen=True, eq=False)
class Pointwise(_Named):
    """A function of the elements of its operands, which are broadcast to its shape."""

    function: Callable[[Sequence[str]], str]
    """From the operands' code to the result's."""
    operands: tuple[Value, ...]
    dtype: str
    shape: Shape
    sizes: SizeTable
    cost: int = field(default=1)
    rounds: bool = False
    """Whether all it does is to round its operand to its dtype, which a store does, too."""
    clamps: tuple[float, float] | None = None
    """The bounds, if all it does is to keep its first operand within them."""
    is_magnitude: bool = False
    """Whether it is the absolute value of its operand."""

    def code(self, body: Body, index: Index) -> str:
        """Return the function of the operands."""
        return self.function(
            [one.at(body, broadcast(body, one.shape, self, index)) for one in self.operands]
        )

    @property
    def sources(self) -> frozenset[Buffer]:
        """All operands'."""
        return frozenset(found for one in self.operands for found in one.sources)


def broadcast(body: Body, shape: Shape, result: Pointwise, index: Index) -> Index:
    """Return where an operand of `shape` is read for the element of `result` at `index`."""
    offset = len(index) - len(shape)
    found: list[str] = []
    for extent, at, wanted in zip(shape, index[offset:], result.shape[offset:], strict=True):
        if extent.literal == 1:
            found.append("0")
        elif result.sizes.equal(extent, wanted):
            found.append(at)
        else:  # one element in some workloads, as many as the result in others
            found.append(body.let("Index", f"{extent.code} == 1 ? 0 : {at}"))
    return tuple(found)


Condition = Callable[[Body, Index], tuple[str, Index]]
"""From an index of a guarded value: the test ("" for none) and the index in what is guarded."""


@dataclass(frozen=True, eq=False)
class Viewed:
    """Elements of another value in other places."""

    base: Value
    shape: Shape
    place: Callable[[Body, Index], Index]
    """From an index here to one of the base."""

    @property
    def dtype(self) -> str:
        """The base's."""
        return self.base.dtype

    @property
    def cost(self) -> int:
        """The base's: indices are cheap."""
        return self.base.cost

    def at(self, body: Body, index: Index) -> str:
        """Return the name of the base's element."""
        return self.base.at(body, self.place(body, index))

    @property
    def sources(self) -> frozenset[Buffer]:
        """The base's."""
        return self.base.sources


@dataclass(frozen=True, eq=False)
class Guarded:
    """Elements of another value where a condition holds, and a number elsewhere."""

    base: Value
    shape: Shape
    place: Condition
    outside: float | int | bool

    @property
    def dtype(self) -> str:
        """The base's."""
        return self.base.dtype

    @property
    def cost(self) -> int:
        """One more than the base's."""
        return self.base.cost + 1

    def at(self, body: Body, index: Index) -> str:
        """Return the name of a variable that is set under the condition."""
        key = (id(self), index)
        known = body.known(key)
        if known is not None:
            return known
        condition, inner = self.place(body, index)
        if not condition:
            return self.base.at(body, inner)
        ctype = computed(self.dtype)
        name = body.fresh("v")
        body.line(f"{ctype} {name} = {number(self.outside, ctype)};")
        with body.block(f"if ({condition})"):
            body.line(f"{name} = {self.base.at(body, inner)};")
        body.remember(key, name)
        return name

    @property
    def sources(self) -> frozenset[Buffer]:
        """The base's."""
        return self.base.sources


@dataclass(frozen=True, eq=False)
class Computed(_Named):
    """A value of its indices, and of other values at places that are computed."""

    write: Callable[[Body, Index], str]
    shape: Shape
    dtype: str
    reads: tuple[Value, ...] = ()
    cost: int = 2

    def code(self, body: Body, index: Index) -> str:
        """Return what `write` gives."""
        return self.write(body, index)

    @property
    def sources(self) -> frozenset[Buffer]:
        """Those of all that is read."""
        return frozenset(found for one in self.reads for found in one.sources)


def converted(value: Value, dtype: str, sizes: SizeTable) -> Value:
    """Return `value` in another dtype."""
    if value.dtype == dtype:
        return value
    source = value.dtype
    return Pointwise(
        lambda codes: cast(codes[0], source, dtype), (value,), dtype, value.shape, sizes, value.cost
    )
