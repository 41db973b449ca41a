"""What a device counted while it executed a candidate: computed from the program, never a time."""

from pydantic import Field

from .record import Record


class BufferTraffic(Record):
    """Bytes moved to and from one tensor or scratch buffer, as the program asked for them."""

    load_bytes: int
    store_bytes: int
    sectors_per_request: float | None = None
    """32-byte sectors per warp-wide access, averaged over sampled warps; None if not sampled."""
    ideal_sectors_per_request: float | None = None
    """The least number of sectors that could carry the same distinct bytes."""
    first_access_fraction: float | None = None
    """Of the sectors that a sampled warp loads or stores to, those that it had not before: what is
    touched again is in L1 unless it was evicted. None if not sampled."""
    reuse_fractions: tuple[float, ...] = ()
    """Of the sectors, those touched again, by how many others of all buffers the warp touched in
    between: entry 0 none, entry k 2 ** (k - 1) to 2 ** k - 1. Empty if not sampled."""


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
    touched_bytes_per_warp: float = 0.0
    """Distinct 32-byte sectors that a sampled warp loads and stores to, in bytes."""
    global_accesses_per_thread: float = 0.0
    """Global loads and stores per thread, averaged over sampled warps."""
