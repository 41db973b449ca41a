"""What calls changed in a buffer set although nothing may write it: guard zones and inputs.

Two host images of a set are compared, the one that was painted and the one that was read back.
Every byte outside of in-place operands, outputs and scratch is compared; only where some differ is
it found out whose they are.
"""

from collections.abc import Iterable

from kopt.kernels.problem import Problem
from kopt.kernels.wide_memory import count_differing
from kopt.tools.gpu.messages import BufferDamage

from .buffer_layout import Bytes, Layout, content_damage, guard_damage
from .set_layout import Span


class SetComparison:
    """Of sets of one layout."""

    def __init__(self, problem: Problem, layout: Layout) -> None:
        """Take the slots of all tensors and scratch buffers as `layout`."""
        self._layout = layout
        self._inputs = tuple(t.name for t in problem.tensors if t.role == "in")
        self._kept = tuple(_kept(layout, self._inputs))

    def damage(self, painted: Bytes, found: Bytes, window: Span) -> tuple[BufferDamage, ...]:
        """Return what differs.

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


def _kept(layout: Layout, inputs: Iterable[str]) -> Iterable[Span]:
    start = 0
    for slot in layout.slots:
        if slot.name not in inputs:
            yield Span(start, slot.offset)
            start = slot.end
    yield Span(start, layout.total_bytes)


def _same(painted: Bytes, found: Bytes, span: Span, window: Span) -> bool:
    """Compare a span within the window."""
    part = slice(max(span.start, window.start), max(min(span.end, window.end), 0))
    return not count_differing(painted[part], found[part])
