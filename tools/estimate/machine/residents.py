"""The blocks and warps that an SM holds while it is simulated."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .steps import WarpStep
from .waits import Reason

BlockSteps = Sequence[Sequence[WarpStep]]


@dataclass
class ResidentBlock:
    """A block that is resident."""

    number: int
    place: int
    """Which of the resident ones it is, from 0: the threads' own memory belongs to the place."""
    steps: BlockSteps
    shift: int
    """Blocks between it and the one whose steps it goes by: its sectors are others."""
    is_first: bool
    started: float
    """When it started."""
    alive: int
    remote_stores: int
    """Warps that have not stored to other blocks of the cluster yet."""
    waiting: dict[str, list["ResidentWarp"]] = field(
        default_factory=lambda: defaultdict(list["ResidentWarp"])
    )
    sent: float = 0.0
    """When the last of them did."""
    triggered: float | None = None
    stored: float = 0.0
    """When the last store was through."""


@dataclass
class Scoreboard:
    """What a warp may wait for."""

    ready: float = 0.0
    """When it is there."""
    reason: Reason = "result"
    index: int = 0
    """Place of the instruction that brings it."""


@dataclass
class ResidentWarp:
    """A warp with the step that is next."""

    block: ResidentBlock
    steps: Sequence[WarpStep]
    scheduler: int
    serial: int
    place: int = 0
    boards: list[Scoreboard] = field(default_factory=lambda: [Scoreboard() for _ in range(6)])
    copied: Scoreboard = field(default_factory=Scoreboard)
    """When what it copies by cp.async is there."""
    groups: list[Scoreboard] = field(default_factory=list[Scoreboard])
    """The same at the end of each group of copies."""
    stopped: float = 0.0
    """When it came to a barrier or another thing that others bring."""
