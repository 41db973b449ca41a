"""What a reduction is: of which elements, along which dimensions, by which fold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .body import Body
from .cuda_types import accumulated
from .folds import LARGEST, LARGEST_MAGNITUDE, Fold
from .sizes import ONE, Shape
from .values import Index, Pointwise, Value


@dataclass(frozen=True)
class Reduction:
    """What is reduced, along which dimensions, to what."""

    value: Value
    dims: tuple[int, ...]
    """In rising order."""
    fold: Fold
    dtypes: tuple[str, ...]
    """Of the results."""
    keeps: bool
    """Whether the results have the reduced dimensions with one element."""
    prepare: str = "{0}"
    """What is done with an element of type {T} before it is added."""
    position: Callable[[Body, Index], str] | None = None
    """The number of an element by its index, for folds that need it; by default its place among
    the reduced ones."""

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that stay."""
        return tuple(one for one in range(len(self.value.shape)) if one not in self.dims)

    @property
    def shape(self) -> Shape:
        """The shape of the results."""
        if self.keeps:
            pairs = enumerate(self.value.shape)
            return tuple(ONE if place in self.dims else extent for place, extent in pairs)
        return tuple(self.value.shape[one] for one in self.kept)

    @property
    def outer(self) -> Shape:
        """The extents that stay."""
        return tuple(self.value.shape[one] for one in self.kept)

    @property
    def inner(self) -> Shape:
        """The extents that are reduced."""
        return tuple(self.value.shape[one] for one in self.dims)

    @property
    def element(self) -> str:
        """The C++ type in which elements are added."""
        return accumulated(self.value.dtype)

    @property
    def state(self) -> str:
        """The C++ type of a state."""
        return f"op::{self.fold.state}<{self.element}>"

    @property
    def cheapest_fold(self) -> Fold:
        """A fold with the same result and fewer instructions, where there is one."""
        is_magnitude = isinstance(self.value, Pointwise) and self.value.is_magnitude
        if self.fold is LARGEST and is_magnitude and self.element == "float":
            return LARGEST_MAGNITUDE
        return self.fold

    def index(self, kept: Sequence[str], reduced: Sequence[str]) -> Index:
        """Return the index of an element."""
        places = dict(zip((*self.kept, *self.dims), (*kept, *reduced), strict=True))
        return tuple(places[one] for one in range(len(places)))

    def result_index(self, kept: Sequence[str]) -> Index:
        """Return the index of a result."""
        return self.index(kept, ["0"] * len(self.dims)) if self.keeps else tuple(kept)
