"""The constants of the time model over machine code, and what each was set by.

`fitted`: chosen from a few values so that measured times of kept candidates come out
(benchmarks/score_estimate.py); docs/estimate.md says on which problems and how they did on others.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Clocks:
    """Latencies in SM clocks, bandwidths in bytes a clock, launches in microseconds."""

    dram: float = 950
    """From a load that misses every cache to its value, TLB and queues of a cold start included.
    Fitted; unloaded and warm it is 479 clocks: Luo et al., "Benchmarking and Dissecting the Nvidia
    Hopper GPU Architecture via Microbenchmarking", 2024."""
    l2: float = 300
    """From a load that L2 answers to its value. Source: ibid., 200 to 300 clocks by the distance of
    the slice."""
    l1: float = 36
    """From a load that L1 answers to its value. Source: ibid., 32 to 40 clocks."""
    shared: float = 30
    """Source: ibid., 29 clocks."""
    shuffle: float = 25
    """Source: ibid., 24 clocks."""
    special_function: float = 24
    """Estimated."""
    constant: float = 60
    """A load from the constant bank, cold. Fitted."""
    special_register: float = 25
    """Estimated."""
    barrier: float = 15
    """From the last arrival at a barrier of a block until its warps go on. Fitted."""
    cluster_barrier: float = 250
    """Estimated."""
    cluster: float = 180
    """A store to the shared memory of another block of the cluster, until it has arrived. Source:
    ibid., some 180 clocks for a load of it."""
    cluster_skew: float = 0.1
    """By how much later than this block the last of its cluster sends, as a part of the time since
    the block's start: its SM has had its data later. Fitted."""
    fetch: float = 3
    """A line of 128 bytes of code that the SM has not had yet, behind the one before. Fitted."""
    first_fetch: float = 300
    """The first line. Estimated."""
    block_start: float = 0
    """From the end of a block to the start of the next on its place. Fitted."""
    intake: float = 64
    """Bytes from L2 to one SM. Source: NVIDIA A100 architecture white paper."""
    l2_bytes: float = 4500
    """Bytes of the whole L2. Fitted; 5,120 is the peak by the same paper."""
    dram_efficiency: float = 0.82
    """Share of the data sheet's bandwidth that short kernels reach. Fitted."""
    launch_us: float = 0.75
    """An empty launch, without programmatic dependent launch. Fitted."""
    completion_us: float = 0.6
    """From the end of a launch until one that waits for it goes on. Fitted."""
    early_launch_us: float = 0.7
    """From the last trigger to the start of the dependent launch. Fitted."""
    early_placement_us: float = 0.15
    """What a launch loses whose blocks, one on most SMs, are placed beside those of the launch
    before. Fitted."""

    def of(self, name: str) -> float:
        """Return the latency of this name; 20 clocks of what has none."""
        return float(getattr(self, name)) if name else _SHORT


_SHORT = 20.0
