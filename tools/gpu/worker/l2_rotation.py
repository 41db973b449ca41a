"""Where the buffer sets of a timing session lie: how many, in which order, how far apart.

L2 is cold for every call because the sets rotate: together they hold several times as much as L2.
This is pure arithmetic; `buffer_sets.py` allocates and fills. One set is

    in ... | inout ... | out ... | scratch of side 0 ... | scratch of side 1 ...

with guard zones around every buffer (`buffer_layout.py`), so that one copy restores all `inout`
tensors of a set and one fill poisons its outputs and scratch. The sets lie in random order, each
somewhere in its own part of the allocation, and are replayed in another random order: no address
says where the next call's data is.

What calls changed although nothing may write it shows between two host images of a set, the one
that was painted and the one that was read back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.set_contents import CallWork, fewest_sets, wanted_sets
from kopt.kernels.wide_work import count_differing
from kopt.tools.gpu.messages import BufferDamage

from .buffer_layout import (
    ALIGNMENT_BYTES,
    BufferSlot,
    Bytes,
    Layout,
    call_sizes,
    content_damage,
    guard_damage,
    lay_out,
)

MAX_SETS = 4096
"""Calls of one replay. A graph of more nodes takes long to build and to launch; the sets together
then hold less than 4 x L2, and `TimingFacts.rotation_over_l2` says how much."""
SLACK_BYTES = 16384
"""A set starts 0 to this many bytes into its part of the allocation, in steps of the alignment."""


@dataclass(frozen=True)
class CacheSpan:
    """A range of bytes: buffers that follow one another, and the guard zones between them."""

    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """Size of the range; 0 if it is empty."""
        return self.end - self.start


@dataclass(frozen=True)
class SetLayout:
    """One set, the same for all of them. Offsets count from SLACK_BYTES before its first byte."""

    layout: Layout
    """SLACK_BYTES on either side belong to the outer guard zones."""
    restored: CacheSpan
    """From the first to the last `inout` tensor."""
    poisoned: CacheSpan
    """From the first output to the last scratch buffer."""

    @property
    def part_bytes(self) -> int:
        """Bytes of the allocation that one set needs: itself and the slack."""
        return self.layout.total_bytes - SLACK_BYTES


@dataclass(frozen=True)
class SetPlace:
    """Where one set lies, and what is in it."""

    part: int
    """Its part of the allocation, counted in memory order."""
    shift: int
    """Bytes from the start of the part to the set."""
    rotation: int
    """Its contents (kernels/set_contents.py): rows by which inputs are rotated, or their draw."""

    def origin(self, layout: SetLayout) -> int:
        """Return where offset 0 of the layout lies, from the start of the allocation."""
        return self.part * layout.part_bytes + self.shift - SLACK_BYTES

    @property
    def window_start(self) -> int:
        """Offset in the layout at which the set's part of the allocation begins."""
        return SLACK_BYTES - self.shift


def lay_out_set(
    problem: Problem,
    workload: Workload,
    plans: Sequence[LaunchPlan | None],
    random: np.random.Generator,
) -> SetLayout:
    """Return the layout of one set.

    Args:
        problem: Its tensors come first.
        workload: Gives their sizes.
        plans: Of each side, None for a library: every side has its own scratch.
        random: Decides the distances between the buffers.
    """
    tensors = dict(call_sizes(problem, workload, None))
    groups = [
        [(t.name, tensors[t.name]) for t in problem.tensors if t.role == role]
        for role in ("in", "inout", "out")
    ]
    for side, plan in enumerate(plans):
        sizes = call_sizes(problem, workload, plan)[len(tensors) :]
        groups[2] += [(scratch_name(side, name), size) for name, size in sizes]
    inner = lay_out([size for group in groups for size in group], random)
    slots = tuple(BufferSlot(s.name, s.offset + SLACK_BYTES, s.size_bytes) for s in inner.slots)
    layout = Layout(slots, inner.total_bytes + 2 * SLACK_BYTES)
    return SetLayout(layout, _span(layout, groups[1]), _span(layout, groups[2]))


def scratch_name(side: int, name: str) -> str:
    """Return what a set calls the scratch buffer `name` of a side."""
    return f"{name} of side {side}"


def set_count(work: CallWork, l2_bytes: int, affordable: int) -> int:
    """Return R, the buffer sets of a replay, 2 to 4096.

    Args:
        work: What one call moves and takes (kernels/set_contents.py).
        l2_bytes: The sets together should hold four times as much.
        affordable: Sets that memory allows; fewer than the fewest are not worth a rotation, so that
            these are tried then.

    Source: "Buffer sets" in docs/measurement.md.
    """
    fewest, wanted = fewest_sets(work, l2_bytes), wanted_sets(work, l2_bytes)
    return max(fewest, min(wanted, MAX_SETS, affordable))


def place_sets(sets: int, contents: int, random: np.random.Generator) -> tuple[SetPlace, ...]:
    """Return the places of `sets` sets in replay order, and one more for warm times.

    Args:
        sets: R.
        contents: How many there are (kernels/set_contents.py). The sets have any R of them, where
            there are so many, else all in turn, in no order; the one for warm times has contents 0.
        random: Decides all that is random.
    """
    parts = random.permutation(sets + 1)
    shifts = random.integers(0, SLACK_BYTES // ALIGNMENT_BYTES + 1, sets + 1)
    if sets <= contents:
        rotations = [*random.choice(contents, sets, replace=False), 0]
    else:
        rotations = [*(random.permutation(sets) % contents), 0]
    return tuple(
        SetPlace(int(part), int(shift) * ALIGNMENT_BYTES, int(rotation))
        for part, shift, rotation in zip(parts, shifts, rotations, strict=True)
    )


def _span(layout: Layout, sizes: Sequence[tuple[str, int]]) -> CacheSpan:
    if not sizes:
        return CacheSpan(0, 0)
    return CacheSpan(layout.by_name[sizes[0][0]].offset, layout.by_name[sizes[-1][0]].end)


class SetComparison:
    """Compares host images of sets that have one layout."""

    def __init__(self, problem: Problem, layout: Layout) -> None:
        """Take the slots of all tensors and scratch buffers as `layout`."""
        self._layout = layout
        self._inputs = tuple(t.name for t in problem.tensors if t.role == "in")
        self._kept = tuple(_kept(layout, self._inputs))

    def damage(self, painted: Bytes, found: Bytes, window: CacheSpan) -> tuple[BufferDamage, ...]:
        """Return the guard zones and inputs that differ.

        Args:
            painted: The whole layout as it was given.
            found: The whole layout; outside of the window it may hold anything, and is filled.
            window: What was read back.
        """
        if all(_same(painted, found, span, window) for span in self._kept):
            return ()
        found[: window.start], found[window.end :] = painted[: window.start], painted[window.end :]
        changed = [
            content_damage(name, painted[slot.offset : slot.end], found[slot.offset : slot.end])
            for name, slot in self._layout.by_name.items()
            if name in self._inputs
        ]
        guards = guard_damage(self._layout, painted, found)
        return (*guards, *(damage for damage in changed if damage is not None))

    def idle_damage(self, painted: Bytes, found: Bytes) -> tuple[BufferDamage, ...]:
        """Return what differs in the outputs, in-place operands and scratch of an unused set."""
        changed = [
            content_damage(
                slot.name, painted[slot.offset : slot.end], found[slot.offset : slot.end]
            )
            for slot in self._layout.slots
            if slot.name not in self._inputs
        ]
        return tuple(one.model_copy(update={"where": "idle"}) for one in changed if one is not None)


def _kept(layout: Layout, inputs: Iterable[str]) -> Iterable[CacheSpan]:
    start = 0
    for slot in layout.slots:
        if slot.name not in inputs:
            yield CacheSpan(start, slot.offset)
            start = slot.end
    yield CacheSpan(start, layout.total_bytes)


def _same(painted: Bytes, found: Bytes, span: CacheSpan, window: CacheSpan) -> bool:
    """Compare a span within the window."""
    part = slice(max(span.start, window.start), max(min(span.end, window.end), 0))
    return not count_differing(painted[part], found[part])
