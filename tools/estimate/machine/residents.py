"""The blocks and warps that an SM holds while it is simulated."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .steps import WarpStep

BlockSteps = Sequence[Sequence[WarpStep]]


@dataclass
class ResidentBlock:
    """A block that is resident."""

    number: int
    steps: BlockSteps
    shift: int
    """Blocks between it and the one whose steps it goes by: its sectors are others."""
    is_first: bool
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
class ResidentWarp:
    """A warp with the step that is next."""

    block: ResidentBlock
    steps: Sequence[WarpStep]
    scheduler: int
    serial: int
    place: int = 0
    boards: list[float] = field(default_factory=lambda: [0.0] * 6)
    """When what was waited for is there, by scoreboard."""
