"""Where the buffers of a call lie in one allocation, and what was written outside of them.

Every buffer starts at a multiple of 256 bytes and has a guard zone of 4 KiB or more on either side,
which is filled with random bytes and compared afterwards. Numbers and host arrays only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, Workload, tensor_size_bytes
from kopt.kernels.wide_work import count_differing
from kopt.tools.devices.timer import CandidateSide, Side
from kopt.tools.gpu.messages import BufferDamage

Bytes = npt.NDArray[np.uint8]

ALIGNMENT_BYTES = 256
GUARD_BYTES = 4096
_MOST_SHIFTS = 16
"""A buffer is moved by 0 to 15 alignments more, so that no distance between buffers is certain."""


@dataclass(frozen=True)
class BufferSlot:
    """The place of one buffer."""

    name: str
    offset: int
    """Offset of the first byte from the start of the allocation."""
    size_bytes: int

    @property
    def end(self) -> int:
        """Offset behind its last byte."""
        return self.offset + self.size_bytes


@dataclass(frozen=True)
class GuardZone:
    """Bytes beside a buffer that nothing may write: from `start` up to `end`."""

    slot: BufferSlot
    where: Literal["before", "after"]
    start: int
    end: int


@dataclass(frozen=True)
class Layout:
    """Buffers in one allocation; all bytes that belong to no buffer belong to a guard zone."""

    slots: tuple[BufferSlot, ...]
    """In the order of their offsets."""
    total_bytes: int

    @cached_property
    def by_name(self) -> dict[str, BufferSlot]:
        """Each slot under its buffer's name."""
        return {slot.name: slot for slot in self.slots}

    def addresses(self, base: int) -> dict[str, int]:
        """Return the address of each buffer in an allocation at `base`."""
        return {slot.name: base + slot.offset for slot in self.slots}

    def guard_zones(self) -> Iterator[GuardZone]:
        """Give both zones of each buffer; together they cover everything between buffers."""
        start = 0
        for slot, following in zip(self.slots, [*self.slots[1:], None], strict=True):
            yield GuardZone(slot, "before", start, slot.offset)
            start = self.total_bytes if following is None else following.offset - GUARD_BYTES
            yield GuardZone(slot, "after", slot.end, start)


def call_sizes(
    problem: Problem, workload: Workload, plan: LaunchPlan | None
) -> list[tuple[str, int]]:
    """Return name and bytes of every buffer of a call: tensors, then the plan's scratch."""
    sizes = [(t.name, tensor_size_bytes(t, workload.axes)) for t in problem.tensors]
    for scratch in plan.scratch if plan is not None else ():
        elements = int(np.prod(scratch.shape, dtype=np.int64))
        sizes.append((scratch.name, elements * dtype_size_bytes(scratch.dtype)))
    return sizes


def side_plan(side: Side) -> LaunchPlan | None:
    """Return the plan whose scratch the side needs; None for one that has no scratch."""
    return side.plan if isinstance(side, CandidateSide) else None


def lay_out(sizes: Sequence[tuple[str, int]], random: np.random.Generator) -> Layout:
    """Return places for buffers of these sizes, in this order, with random distances."""
    slots: list[BufferSlot] = []
    end = 0
    for name, size_bytes in sizes:
        least = end + GUARD_BYTES * (2 if slots else 1)
        shift = int(random.integers(_MOST_SHIFTS)) * ALIGNMENT_BYTES
        offset = -(-least // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + shift
        slots.append(BufferSlot(name, offset, size_bytes))
        end = offset + size_bytes
    return Layout(tuple(slots), end + GUARD_BYTES)


def paint_guards(image: Bytes, layout: Layout, random: np.random.Generator) -> None:
    """Fill every guard zone of a host image of the allocation with random bytes."""
    for zone in layout.guard_zones():
        size = zone.end - zone.start
        image[zone.start : zone.end] = np.frombuffer(random.bytes(size), dtype=np.uint8)


def guard_damage(layout: Layout, painted: Bytes, found: Bytes) -> tuple[BufferDamage, ...]:
    """Return each guard zone that differs between two images of the allocation."""
    damage: list[BufferDamage] = []
    for zone in layout.guard_zones():
        changed = np.flatnonzero(painted[zone.start : zone.end] != found[zone.start : zone.end])
        if changed.size:
            origin = zone.slot.offset if zone.where == "before" else zone.slot.end
            damage.append(
                BufferDamage(
                    buffer=zone.slot.name,
                    where=zone.where,
                    first_byte=zone.start + int(changed[0]) - origin,
                    changed_bytes=int(changed.size),
                )
            )
    return tuple(damage)


def content_damage(name: str, given: Bytes, found: Bytes) -> BufferDamage | None:
    """Return where the bytes of a buffer differ from what it was given; None if they do not."""
    if not count_differing(given, found):
        return None
    changed = np.flatnonzero(given != found)
    return BufferDamage(
        buffer=name,
        where="inside",
        first_byte=int(changed[0]),
        changed_bytes=int(changed.size),
    )


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    """Return the bytes of an array in C order, one axis."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
