"""Convolutions as contractions: of 1 to 3 dimensions, grouped, dilated, transposed.

A row is an output channel, a column a place of an image, and a term an input channel with a place
in the window: neighbouring columns are neighbours in memory, in the image and in the result.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .body import Body
from .call import Call
from .contraction import Contraction, Operand
from .contraction_kernels import contracted
from .cuda_types import cast
from .residues import Residues, residues_of
from .sizes import Shape, Size, product
from .values import Guarded, Index, Value
from .windows import Window, transposed, windows

Lowering = Callable[[Call], Value]


def _convolution(call: Call) -> Value:
    value, weight, bias = call.value(0), call.value(1), call.optional(2)
    rank = len(weight.shape) - 2
    if len(value.shape) != rank + 2:
        call.refuse("needs a batch dimension")
    value, weight = call.program.at_hand(value), call.program.at_hand(weight)
    steps, paddings, dilations = (call.size_list(place, rank) for place in (3, 4, 5))
    along = tuple(map(Window, weight.shape[2:], steps, paddings, dilations))
    counts = call.shape[2:]
    groups = call.size(8, "groups", 1)
    if not call.flag(6):
        sliding = _Sliding(windows(value, along, counts, 0.0), weight, counts, is_transposed=False)
        return _contracted(call, sliding, bias, groups)
    residues = residues_of(along, counts)
    if residues is None:
        sliding = _Sliding(transposed(value, along, counts), weight, counts, is_transposed=True)
        return _contracted(call, sliding, bias, groups)
    by_residue = _Sliding(
        residues.patches(value), residues.kernels(weight), residues.places, True, residues
    )
    return _contracted(call, by_residue, bias, groups)


@dataclass(frozen=True)
class _Sliding:
    """What the sums of a convolution are of."""

    patches: Guarded
    """(image, channel, residues, places, taps)"""
    weight: Value
    """(out, in / groups, taps), or of a transposed one (in, out / groups, residues, taps)."""
    places: Shape
    """How many outputs an image has in each dimension, or those of one residue."""
    is_transposed: bool
    residues: Residues | None = None

    @property
    def steps(self) -> Shape:
        """The residues in each dimension; () where there are none."""
        return () if self.residues is None else self.residues.steps

    @property
    def taps(self) -> Shape:
        """What one output takes in each dimension."""
        return self.patches.shape[-len(self.places) :]


def _contracted(call: Call, sliding: _Sliding, bias: Value | None, groups: Size) -> Value:
    images, channels = sliding.patches.shape[:2]
    taken, made = channels // groups, call.shape[1] // groups
    steps, places, taps = sliding.steps, sliding.places, sliding.taps

    def kernel(body: Body, index: Index) -> Index:
        batch, row, term = index
        group, *residues = body.split(batch, (groups, *steps))
        channel, *within = body.split(term, (taken, *taps))
        if sliding.is_transposed:  # (in, out / groups, ...)
            return (_joined(body, group, taken, channel), row, *residues, *within)
        return (_joined(body, group, made, row), channel, *within)

    def patch(body: Body, index: Index) -> Index:
        batch, term, column = index
        group, *residues = body.split(batch, (groups, *steps))
        channel, *within = body.split(term, (taken, *taps))
        image, *place = body.split(column, (images, *places))
        return (image, _joined(body, group, taken, channel), *residues, *place, *within)

    def kernel_ahead(body: Body, index: Index) -> None:
        batch, _, term = index
        _split_known(body, ((batch, (groups, *steps)), (term, (taken, *taps))))

    def patch_ahead(body: Body, index: Index) -> None:
        batch, _, column = index
        _split_known(body, ((batch, (groups, *steps)), (column, (images, *places))))

    def target(body: Body, index: Index) -> Index:
        batch, row, column = index
        group, *residues = body.split(batch, (groups, *steps))
        image, *place = body.split(column, (images, *places))
        if sliding.residues is not None:
            place = list(sliding.residues.outputs(body, residues, place))
        return (image, _joined(body, group, made, row), *place)

    def inside(index: Index) -> str:
        return "" if sliding.residues is None else sliding.residues.inside(index[2:])

    def start(body: Body, index: Index, total: str) -> str:
        assert bias is not None
        return f"{total} + {cast(bias.at(body, (index[1],)), bias.dtype, call.dtype)}"

    contraction = Contraction(
        batch=product((groups, *steps)),
        rows=made,
        columns=product((images, *places)),
        terms=product((taken, *taps)),
        left=Operand(sliding.weight, kernel, not sliding.is_transposed, kernel_ahead),
        right=Operand(sliding.patches, patch, False, patch_ahead),
        shape=call.shape,
        dtype=call.dtype,
        target=target,
        inside=inside,
        start=None if bias is None else start,
    )
    return contracted(call.program, contraction, call.node.name)


def _split_known(body: Body, positions: Iterable[tuple[str, Shape]]) -> None:
    """Split the positions that have a name already, so that what comes later finds the parts."""
    for position, shape in positions:
        if position:
            body.split(position, shape)


def _joined(body: Body, group: str, extent: Size, within: str) -> str:
    """Return a channel by its group and its place in the group."""
    if group == "0":
        return within
    return body.let("Index", f"{group} * {extent.factor} + {within}")


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {"aten.convolution.default": _convolution}
