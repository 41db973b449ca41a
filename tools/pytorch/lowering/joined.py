"""Values side by side along one dimension: the reader chooses by its index."""

from dataclasses import dataclass

from .body import Body
from .buffers import Buffer
from .cuda_types import cast, computed
from .sizes import Shape
from .values import Index, Value


@dataclass(frozen=True, eq=False)
class Joined:
    """Values side by side along one dimension."""

    parts: tuple[Value, ...]
    shape: Shape
    dtype: str
    dim: int

    @property
    def cost(self) -> int:
        """The dearest part's and the choice."""
        return max(part.cost for part in self.parts) + len(self.parts)

    def at(self, body: Body, index: Index) -> str:
        """Return the name of a variable that is set from the part that the index lies in."""
        key = (id(self), index)
        known = body.known(key)
        if known is not None:
            return known
        name = body.fresh("v")
        body.line(f"{computed(self.dtype)} {name};")
        self._choose(body, index, name)
        body.remember(key, name)
        return name

    def _choose(self, body: Body, index: Index, name: str) -> None:
        at, end = index[self.dim], None
        for number_, part in enumerate(self.parts):
            start = end
            end = part.shape[self.dim] if end is None else end + part.shape[self.dim]
            word = "if" if number_ == 0 else "else if"
            is_last = number_ == len(self.parts) - 1
            with body.block("else" if is_last else f"{word} ({at} < {end.code})"):
                place = at if start is None else body.let("Index", f"{at} - {start.factor}")
                inner = (*index[: self.dim], place, *index[self.dim + 1 :])
                body.line(f"{name} = {cast(part.at(body, inner), part.dtype, self.dtype)};")

    @property
    def sources(self) -> frozenset[Buffer]:
        """All parts'."""
        return frozenset(found for part in self.parts for found in part.sources)
