"""What an SM has to do, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .residents import BlockSteps
from .waits import Waits

MAX_STEPS = 150_000
"""Steps that are simulated of a launch, if no other number is given: a second or less."""
Unit = Literal["dram", "l2", "sm_intake", "load_store", "issue"]
"""dram and l2: the SM's share of them; sm_intake: bytes from L2 into the SM; load_store: its unit
for accesses; issue: the busiest scheduler or pipe."""


@dataclass
class SmTiming:
    """When things happened, in clocks."""

    waited: float = 0.0
    """When the blocks that start first came to the wait for the launch before; 0 without one."""
    triggered: float = 0.0
    """When the last block had triggered the next launch, or ended."""
    ended: float = 0.0
    """When the last block had ended, and its bytes were through."""
    busy: dict[Unit, float] = field(default_factory=dict[Unit, float])
    """For how long each unit was taken."""
    waits: Waits = field(default_factory=Waits)


@dataclass(frozen=True)
class SmWork:
    """What an SM has to do."""

    blocks: Sequence[int]
    """Numbers of its blocks, in their order."""
    steps: Mapping[int, BlockSteps]
    """Of the warps of some blocks, by number; the others go by the steps of the nearest."""
    resident: int
    """Blocks that it holds at once."""
    most: int = MAX_STEPS
    """Steps that are simulated; the others are taken to go on at the same pace."""
    last_start: float = 0.0
    """The clock before which its last block cannot start; what others do is done beside that."""
