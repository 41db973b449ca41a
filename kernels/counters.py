"""What was counted while a candidate ran: by the program itself, or by a GPU's own counters."""

from typing import Literal

from pydantic import Field

from .record import Record
from .status import Provenance


class BufferTraffic(Record):
    """Bytes moved to and from one tensor or scratch buffer, as the program asked for them."""

    load_bytes: int
    store_bytes: int
    sectors_per_request: float | None = None
    """32-byte sectors per warp-wide access, averaged over sampled warps; None if not sampled."""
    ideal_sectors_per_request: float | None = None
    """The least number of sectors that could carry the same distinct bytes."""


class ExecutionCounters(Record):
    """Counters of one execution of a whole launch plan."""

    traffic: dict[str, BufferTraffic] = Field(default_factory=dict[str, BufferTraffic])
    """By tensor or scratch name."""
    shared_load_bytes: int = 0
    shared_store_bytes: int = 0
    barriers_per_block: float = 0.0
    """Block-wide barriers that one block passed, averaged over all blocks of all launches."""
    load_phases_per_thread: float = 0.0
    """Barrier-separated phases in which a sampled thread loads from global memory: a lower bound
    of the dependent round trips on its path."""
    global_accesses_per_thread: float = 0.0
    """Global loads and stores per thread, averaged over sampled warps."""


OccupancyLimiter = Literal["warps", "blocks", "registers", "shared_memory", "barriers"]


class StallShare(Record):
    """How long warps waited for one reason."""

    reason: str
    """Nsight Compute's name: long_scoreboard (data from memory), short_scoreboard (shared memory,
    special functions), barrier, lg_throttle, math_pipe_throttle, wait, … (docs/profile.md)."""
    cycles_per_instruction: float
    """Warp cycles spent so for each instruction issued."""
    fraction: float
    """Fraction of all warp cycles, 0 to 1."""


class StallLine(Record):
    """A line of the candidate where sampled warps were found waiting."""

    line: int
    """1-based, in the candidate's own file."""
    reason: str
    """The reason most often sampled there."""
    samples: int
    """Samples of all reasons."""
    fraction: float
    """Fraction of the launch's waiting samples, 0 to 1."""


class LaunchCounters(Record):
    """The counters of one launch."""

    kernel: str
    time_us: float | None = None
    """Under the profiler, at whatever clock the GPU ran."""
    dram_read_bytes: int | None = None
    dram_written_bytes: int | None = None
    """What left L2 while the kernel ran; the rest is written back later and not counted."""
    compute_fraction: float | None = None
    """Busiest part of the SMs, of its peak, 0 to 1."""
    memory_fraction: float | None = None
    """Busiest part of the memory system (L1, L2 or DRAM), of its peak."""
    dram_fraction: float | None = None
    """DRAM alone, of its peak."""
    l2_fraction: float | None = None
    """L2 alone, of its peak."""
    l2_hit_fraction: float | None = None
    """Sectors found in L2, of all asked for."""
    achieved_occupancy: float | None = None
    """Active warps per SM while it has any / warp slots, 0 to 1."""
    occupancy_limiters: tuple[OccupancyLimiter, ...] = ()
    """What keeps more blocks from being resident; several when they tie."""
    issue_fraction: float | None = None
    """Cycles in which a scheduler issued an instruction, of all active cycles."""
    registers_per_thread: int | None = None
    instructions: int | None = None
    """Warp instructions executed."""
    bank_conflicts: int | None = None
    """Extra shared memory passes."""
    stalls: tuple[StallShare, ...] = ()
    """The largest first."""
    stall_lines: tuple[StallLine, ...] = ()
    """The most sampled first; empty where the sampler saw nothing or lines are not known."""


class HardwareCounters(Record):
    """The counters of one call, or why there are none."""

    launches: tuple[LaunchCounters, ...] = ()
    """In plan order; empty if unavailable."""
    provenance: Literal[Provenance.MEASURED, Provenance.UNAVAILABLE]
    reason: str | None = None
    """Why they are unavailable and how to get them, one line; None when measured."""
    notes: tuple[str, ...] = ()
    """What is missing although the rest was read, e.g. source lines."""
    tool: str | None = None
    """e.g. Nsight Compute 2025.3.1; None if it was not found."""
    report_path: str | None = None
    """The .ncu-rep file, which Nsight Compute's own viewer opens."""
    log_path: str | None = None
    """What the tool said."""
    sandbox: str | None = None
