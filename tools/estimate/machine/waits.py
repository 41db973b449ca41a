"""What the warps of an SM wait for, by reason and instruction, in warp clocks."""

from dataclasses import dataclass, field
from typing import Literal

Reason = Literal["memory", "shared", "result", "barrier", "cluster", "issue", "pipe", "fetch"]
"""memory: data from beyond the registers; shared: shared memory and shuffles; result: another
result that comes late; barrier and cluster: other warps, other blocks; issue: a scheduler that
others take; pipe: arithmetic that others do; fetch: machine code."""


@dataclass
class Waits:
    """Warp clocks that were waited for."""

    clocks: dict[tuple[Reason, int], float] = field(default_factory=dict[tuple[Reason, int], float])
    """By reason and place of the instruction that was waited for."""

    def add(self, reason: Reason, index: int, clocks: float) -> None:
        """Note that a warp waited so long; nothing where it did not."""
        if clocks > 0.0:
            self.clocks[reason, index] = self.clocks.get((reason, index), 0.0) + clocks

    def at(self, wanted: Reason) -> dict[int, float]:
        """Return the warp clocks of one reason by instruction."""
        return {index: t for (reason, index), t in self.clocks.items() if reason == wanted}
