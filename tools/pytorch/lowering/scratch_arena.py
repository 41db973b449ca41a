"""Which results share a scratch buffer: those that are never alive together, of one dtype."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .buffers import Buffer, Kernel
from .sizes import Size, SizeTable, product

_MOST_SIZES = 6
"""How many sizes that no other covers a slot may have: each stands in its expression."""


@dataclass
class ScratchSlot:
    """A scratch buffer of the header."""

    name: str
    dtype: str
    sizes: list[Size] = field(default_factory=list[Size])
    """Elements of what it holds: it needs the largest."""
    free_after: int = -1
    """The last launch that reads or writes what it holds."""

    @property
    def shape(self) -> str:
        """Its elements, in the header's expressions."""
        texts = [size.header for size in self.sizes]
        return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"


def arranged(kernels: Sequence[Kernel], sizes: SizeTable) -> dict[Buffer, ScratchSlot]:
    """Return the slot of each scratch buffer that the kernels use."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for number, kernel in enumerate(kernels):
        for use in kernel.uses:
            if use.buffer.kind == "scratch":
                first.setdefault(use.buffer, number)
                last[use.buffer] = number
    slots: list[ScratchSlot] = []
    places: dict[Buffer, ScratchSlot] = {}
    for buffer, start in first.items():  # in the order of the launches
        size = product(buffer.shape)
        slot = _best(slots, (buffer.dtype, start), size, sizes)
        if slot is None:
            slot = ScratchSlot(f"scratch{len(slots) + 1}", buffer.dtype)
            slots.append(slot)
        _widen(slot, size, sizes)
        slot.free_after = last[buffer]
        places[buffer] = slot
    return places


def _best(
    slots: Sequence[ScratchSlot], wanted: tuple[str, int], size: Size, sizes: SizeTable
) -> ScratchSlot | None:
    """Return the free slot that grows least, and of those the one that is least too large."""
    dtype, start = wanted
    free = [one for one in slots if one.dtype == dtype and one.free_after < start]
    needed = sizes.largest(size)

    def cost(slot: ScratchSlot) -> tuple[int, int]:
        held = max(sizes.largest(one) for one in slot.sizes)
        return max(needed - held, 0), max(held - needed, 0)

    fitting = [one for one in free if _room(one, size, sizes)]
    return min(fitting, key=cost, default=None)


def _room(slot: ScratchSlot, size: Size, sizes: SizeTable) -> bool:
    is_covered = any(sizes.dominates(one, size) for one in slot.sizes)
    return is_covered or len(slot.sizes) < _MOST_SIZES


def _widen(slot: ScratchSlot, size: Size, sizes: SizeTable) -> None:
    """Make `slot` hold `size` elements: sizes that another covers at every point are left out."""
    if any(sizes.dominates(one, size) for one in slot.sizes):
        return
    slot.sizes = [one for one in slot.sizes if not sizes.dominates(size, one)]
    slot.sizes.append(size)
