"""Global memory of a stitched candidate: values between regions, and scratch of the parts.

Regions run one after another, so that a value's memory is free after its last reader, and scratch
of one region after the region.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kopt.kernels.header import ScratchTemplate
from kopt.kernels.problem import Problem
from kopt.tools.pytorch.graph import ValueType
from kopt.tools.pytorch.lowering.buffers import Buffer, Kernel, Use
from kopt.tools.pytorch.lowering.scratch_arena import arranged
from kopt.tools.pytorch.lowering.sizes import SizeTable, shape_of

_MOST_SIZES = 6
"""Different sizes that one buffer may be for: each stands in its expression."""


@dataclass(frozen=True)
class ScratchLine:
    """A scratch buffer of the stitched header."""

    name: str
    dtype: str
    shape: str
    is_zeroed: bool = False

    def text(self) -> str:
        """Return its line of the header."""
        zero = ", init: zero" if self.is_zeroed else ""
        return f'  {self.name}: {{dtype: {self.dtype}, shape: "{self.shape}"{zero}}}'


def placed_values(
    whole: Problem, values: Mapping[str, ValueType], steps: Sequence[Mapping[str, str]]
) -> tuple[dict[str, str], list[ScratchLine]]:
    """Return the buffer of each value between regions, and these buffers.

    Args:
        whole: The problem of the network.
        values: Types by wire.
        steps: Wires by the names of tensors, of each region in order.
    """
    buffers = {
        wire: Buffer(wire, kind.dtype, shape_of(kind), "scratch") for wire, kind in values.items()
    }
    kernels = [
        Kernel(
            name="",
            comment="",
            text="",
            uses=tuple(Use(buffers[w], w, False) for w in wires.values() if w in buffers),
            grid="1",
            block="1",
        )
        for wires in steps
    ]
    slots = arranged(kernels, SizeTable(whole))
    prefix = free_prefix("scratch", whole)
    names = {wire: slots[one].name for wire, one in buffers.items() if one in slots}
    used = {slot.name: slot for slot in slots.values()}
    lines = [
        ScratchLine(name.replace("scratch", prefix), slot.dtype, slot.shape)
        for name, slot in used.items()
    ]
    return {wire: name.replace("scratch", prefix) for wire, name in names.items()}, lines


def free_prefix(wanted: str, whole: Problem) -> str:
    """Return a beginning of names that no tensor of the problem has."""
    found = wanted
    while any(tensor.name.startswith(found) for tensor in whole.tensors):
        found += "_"
    return found


@dataclass
class PartScratch:
    """Scratch of the parts: what no region keeps is shared by all."""

    prefix: str
    _shared: dict[tuple[str, int], dict[str, None]] = field(
        default_factory=dict[tuple[str, int], dict[str, None]]
    )
    """Sizes by dtype and number."""
    _zeroed: list[ScratchLine] = field(default_factory=list[ScratchLine])

    def place(self, scratch: Sequence[tuple[ScratchTemplate, str]]) -> dict[str, str]:
        """Return the buffer of each scratch of one region, given with its size in elements."""
        found: dict[str, str] = {}
        taken: set[tuple[str, int]] = set()
        for template, size in scratch:
            if template.init == "zero":  # the memset is at the start of the call, once
                name = f"{self.prefix}_zeroed{len(self._zeroed) + 1}"
                self._zeroed.append(ScratchLine(name, template.dtype, size, is_zeroed=True))
                found[template.name] = name
                continue
            slot = self._slot(template.dtype, size, taken)
            taken.add(slot)
            self._shared.setdefault(slot, {})[size] = None
            found[template.name] = self._name(slot)
        return found

    def lines(self) -> list[ScratchLine]:
        """Return all buffers."""
        shared = [
            ScratchLine(
                self._name(slot),
                slot[0],
                next(iter(sizes)) if len(sizes) == 1 else f"max({', '.join(sizes)})",
            )
            for slot, sizes in self._shared.items()
        ]
        return [*shared, *self._zeroed]

    def _slot(self, dtype: str, size: str, taken: set[tuple[str, int]]) -> tuple[str, int]:
        number = 1
        while True:
            slot = (dtype, number)
            sizes = self._shared.get(slot, {})
            if slot not in taken and (size in sizes or len(sizes) < _MOST_SIZES):
                return slot
            number += 1

    def _name(self, slot: tuple[str, int]) -> str:
        return f"{self.prefix}_{slot[0]}_{slot[1]}"
