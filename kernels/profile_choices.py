"""The profiles of a candidate's tune choices side by side: what an estimate says of each."""

from typing import Literal

from pydantic import Field

from .record import Record
from .status import Status
from .time_estimate import PartName


class ChoiceProfile(Record):
    """One choice of tune values. The static facts are of the launch with the most threads."""

    tune: dict[str, int]
    """Every declared name, with the value that the workload's variant sets, where it sets one."""
    is_default: bool
    status: Status
    why: str = ""
    """The first error, unless it passed."""
    estimated_us: float | None = None
    """docs/estimate.md: an order, not a time. None unless it compiled."""
    measured_us: float | None = None
    """Median of a short session on a GPU, cold L2; None without one."""
    mostly: PartName | None = None
    """The largest part of the estimate."""
    blocks: int | None = None
    """Of the grid; computed, as are all of the following."""
    threads_per_block: int | None = None
    waves: float | None = None
    """Blocks / those that the GPU holds at once."""
    registers_per_thread: int | None = None
    spill_bytes: int | None = None
    """Stored and loaded, a thread."""
    theoretical_occupancy: float | None = None
    """0 to 1."""
    instructions: int | None = None
    """SASS instructions of the code."""

    @property
    def order_us(self) -> float:
        """What it is ordered by: the measured time, else the estimate; without both the last."""
        known = (self.measured_us, self.estimated_us)
        return next((us for us in known if us is not None), float("inf"))


class ProfileChoices(Record):
    """All choices that were asked for, the fastest first."""

    schema_: Literal["kopt.profile_choices/1"] = Field(
        default="kopt.profile_choices/1", alias="schema"
    )
    status: Status
    """passed if one choice did, else that of the default or first one."""
    kernel: str
    """Kernel id."""
    candidate: str
    arch: str
    gpu: str
    """Data sheet, or device, that the estimates stand on."""
    device: str | None
    """What measured the times, e.g. cuda:0; None where nothing did."""
    set_by_variant: tuple[str, ...] = ()
    """Names that no choice changes: the variant that serves the workload sets them."""
    choices: tuple[ChoiceProfile, ...]
