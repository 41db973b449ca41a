"""Contractions: C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n].

Matrix products and convolutions are such sums; they differ in where A, B and C lie, which the
operands say. How they are computed is `contraction_kernels.py`'s.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .body import Body
from .cuda_types import accumulated, cast
from .program import Epilogue
from .sizes import Shape, Size
from .values import Index, Value


def _nothing(body: Body, index: Index) -> None:
    del body, index


@dataclass(frozen=True)
class Operand:
    """A or B: a value, and where an element of the sum is read in it."""

    value: Value
    place: Callable[[Body, Index], Index]
    """From (b, m, k) or (b, k, n) to an index of the value."""
    runs_along_k: bool
    """Whether neighbours in memory are neighbours along k."""
    ahead: Callable[[Body, Index], None] = _nothing
    """Computes what `place` needs of an index of which a part is not known yet, an empty name."""


@dataclass(frozen=True)
class Contraction:
    """A sum of products."""

    batch: Size
    rows: Size
    columns: Size
    terms: Size
    """Extents of b, m, n and k."""
    left: Operand
    right: Operand
    shape: Shape
    """The extents of the result."""
    dtype: str
    target: Callable[[Body, Index], Index]
    """From (b, m, n) to an index of the result."""
    inside: Callable[[Index], str] | None = None
    """Returns the condition under which an index lies in the result, "" for always: extents may be
    rounded up. None: all do."""
    is_plain_order: bool = False
    """Whether the result lies as (b, m, n), row-major."""
    start: Callable[[Body, Index, str], str] | None = None
    """What becomes of a sum, given the index of its result: scaled, added to something."""

    @property
    def element(self) -> str:
        """The C++ type in which sums are taken."""
        return accumulated(self.dtype)


def element(contraction: Contraction, operand: Operand, body: Body, index: Index) -> str:
    """Return the element of A or B at (b, m, k) or (b, k, n), in the type of the sums."""
    value = operand.value
    name = value.at(body, operand.place(body, index))
    target = {"float": "float32", "double": "float64"}.get(contraction.element, "int64")
    return cast(name, value.dtype, target)


def finish(contraction: Contraction, body: Body, index: Index, epilogue: Epilogue) -> None:
    """Write the statements that store the sum called `sum`."""
    target = contraction.target(body, index)
    test = "" if contraction.inside is None else contraction.inside(target)
    if test:
        with body.block(f"if ({test})"):
            _store(contraction, body, target, epilogue)
    else:
        _store(contraction, body, target, epilogue)


def _store(contraction: Contraction, body: Body, target: Index, epilogue: Epilogue) -> None:
    result = body.fresh("result")
    text = "sum" if contraction.start is None else contraction.start(body, target, "sum")
    source = {"float": "float32", "double": "float64"}.get(contraction.element, "int64")
    body.line(f"const auto {result} = {cast(text, source, contraction.dtype)};")
    epilogue.store(body, target, result)
