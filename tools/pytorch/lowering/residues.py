"""Transposed convolutions with a stride, by residues: each output is computed from its own taps.

With stride s and padding p, the output at o = s * q + r takes tap k of the window only where
(o + p - k) is a multiple of s. So all outputs of one residue r have the same taps: every s-th, from
(r + p) % s on, read at neighbouring places of the input. Otherwise all but one of s terms would be
zero in each dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .body import Body
from .sizes import Shape, Size, ceil_div
from .values import Guarded, Index, Value
from .windows import Window


@dataclass(frozen=True)
class Residues:
    """The outputs of a transposed convolution, by their residues in each dimension."""

    along: tuple[Window, ...]
    """Without dilation; strides are numbers."""
    extents: Shape
    """How many outputs the result has in each dimension."""

    @property
    def steps(self) -> Shape:
        """How many residues there are in each dimension."""
        return tuple(one.step for one in self.along)

    @property
    def places(self) -> Shape:
        """The most outputs of one residue in each dimension."""
        both = zip(self.extents, self.steps, strict=True)
        return tuple(ceil_div(extent, step) for extent, step in both)

    @property
    def taps(self) -> Shape:
        """The most taps of one residue in each dimension."""
        return tuple(ceil_div(one.extent, one.step) for one in self.along)

    def patches(self, value: Value) -> Guarded:
        """Return what outputs are computed from.

        Args:
            value: What was convolved, its last dimensions along the windows.

        Returns:
            Of the leading dimensions, then residues, places, and taps.
        """
        rank = len(self.along)
        lead = len(value.shape) - rank

        def place(body: Body, index: Index) -> tuple[str, Index]:
            residues, places, taps = _parts(index[lead:], rank)
            found: list[str] = []
            tests: list[str] = []
            for number, window in enumerate(self.along):
                base = _padded(body, window, residues[number])
                if window.step.literal != 1:
                    base = body.let("Index", f"{base} / {window.step.factor}")
                at = body.let("Index", f"{places[number]} + {base} - {taps[number]}")
                tests += [f"{at} >= 0", f"{at} < {value.shape[lead + number].code}"]
                found.append(at)
            return " && ".join(tests), (*index[:lead], *found)

        shape = (*value.shape[:lead], *self.steps, *self.places, *self.taps)
        return Guarded(value, shape, place, 0.0)

    def kernels(self, weight: Value) -> Guarded:
        """Return the weights of each residue, zero where it has a tap less than others.

        Args:
            weight: Its last dimensions along the windows.

        Returns:
            Of the leading dimensions, then residues and taps.
        """
        rank = len(self.along)
        lead = len(weight.shape) - rank

        def place(body: Body, index: Index) -> tuple[str, Index]:
            residues, taps = index[lead : lead + rank], index[lead + rank :]
            found: list[str] = []
            tests: list[str] = []
            for number, window in enumerate(self.along):
                if window.step.literal == 1:
                    found.append(taps[number])
                    continue
                first = body.let(
                    "Index",
                    f"{_padded(body, window, residues[number])} % {window.step.factor}",
                )
                tap = body.let("Index", f"{first} + {taps[number]} * {window.step.factor}")
                if not _divides(window.step, window.extent):
                    tests.append(f"{tap} < {window.extent.code}")
                found.append(tap)
            return " && ".join(tests), (*index[:lead], *found)

        shape = (*weight.shape[:lead], *self.steps, *self.taps)
        return Guarded(weight, shape, place, 0.0)

    def outputs(self, body: Body, residues: Sequence[str], places: Sequence[str]) -> Index:
        """Return where the outputs of these residues and places lie in the result."""
        return tuple(
            place
            if window.step.literal == 1
            else body.let("Index", f"{place} * {window.step.factor} + {residue}")
            for window, residue, place in zip(self.along, residues, places, strict=True)
        )

    def inside(self, outputs: Sequence[str]) -> str:
        """Return the condition under which outputs are within the result; "" where all are."""
        return " && ".join(
            f"{at} < {extent.code}"
            for window, at, extent in zip(self.along, outputs, self.extents, strict=True)
            if not _divides(window.step, extent)
        )


def residues_of(along: Sequence[Window], extents: Shape) -> Residues | None:
    """Return the outputs by residues; None where there is one, or where windows are dilated."""
    steps = [one.step.literal for one in along]
    if any(one.dilation.literal != 1 for one in along) or None in steps:
        return None
    return None if all(step == 1 for step in steps) else Residues(tuple(along), extents)


def _parts(index: Index, rank: int) -> tuple[Index, Index, Index]:
    return index[:rank], index[rank : 2 * rank], index[2 * rank :]


def _padded(body: Body, window: Window, residue: str) -> str:
    """Return the name of a residue with the padding added."""
    if window.padding.literal == 0:
        return residue
    padding = window.padding.factor
    return padding if residue == "0" else body.let("Index", f"{residue} + {padding}")


def _divides(step: Size, extent: Size) -> bool:
    if step.literal == 1:
        return True
    return (
        step.literal is not None
        and extent.literal is not None
        and extent.literal % step.literal == 0
    )
