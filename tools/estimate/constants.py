"""The numbers of the time model that no data sheet in config/gpus/ holds.

Each says where it comes from. `estimated` marks a choice: it was set once to a plausible size, not
fitted to results, and moves the order of candidates only where they differ in that term.
"""

DRAM_EFFICIENCY = 0.88
"""Share of the data-sheet bandwidth that a streaming kernel reaches. Source: FlashInfer's
fused_add_rmsnorm at 16384x4096 moved 2.94 of 3.35 TB/s on an H100 (measured, CUDA graphs)."""

L2_BYTES_PER_CLOCK = 5120 * 0.6
"""L2 bandwidth of the whole GPU. Source: 5,120 bytes per clock, NVIDIA A100 architecture white
paper, "L2 cache read bandwidth"; the share of it that is reached, 0.6, is estimated, and so is its
use for B200."""

SM_INTAKE_BYTES_PER_CLOCK = 64
"""Bandwidth between L2 and one SM. Source: NVIDIA A100 architecture white paper, 64 bytes per
clock."""

L1_SECTORS_PER_CLOCK = 4
"""32-byte sectors that one SM's load/store unit serves in one clock: 128 bytes. Source: CUDA C++
programming guide, shared memory and L1 bandwidth of compute capability 7.x to 10.x."""

DRAM_LATENCY_US = 0.5
"""Time from a load that misses every cache to its value, under load. Source: the reference kernel
of silu_and_mul at 128 rows, 56 steps each of which waits for its loads, takes 28.8 us on an H100
(measured). Unloaded it is 479 SM clocks (0.27 us) there: Luo et al., "Benchmarking and Dissecting
the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024."""

MAX_LOADS_IN_FLIGHT = 8
"""Loads of one thread that overlap at most, however many the code has under way. Estimated."""

ASSUMED_ACCESS_BYTES = 4
"""Width of an access when the instruction mix is unknown. Estimated: one 32-bit access."""

BARRIER_BASE_CLOCKS = 20
BARRIER_CLOCKS_PER_WARP = 2
"""A block-wide barrier costs the base plus this for each warp of the block. Estimated."""

PDL_LAUNCH_SHARE = 0.6
"""Share of an empty launch's time that one takes which may start before its predecessor has ended.
Source: FlashInfer's fused_add_rmsnorm at 8 and 128 rows on an H100, 0.4 to 0.5 of 1.11 us saved
(measured)."""

BLOCK_START_US = 0.0006
"""Time between the starts of two blocks, over the whole GPU. Source: on an H100 an empty kernel of
1,024 blocks takes 1.16 to 1.26 us, one of 8,192 takes 5.48 to 5.52 us with 32 to 256 threads a
block, and 1.55 and 6.40 us with 1,024 (measured, docs/benchmarks.md)."""

FREE_BLOCKS_PER_SM = 3
"""Blocks that an SM starts within the time of an empty launch. Source: the same empty kernels take
0.84 us with one block and 5.48 with 8,192, of which some 390 thus cost nothing."""

PDL_BLOCK_START_US = 0.00123
"""BLOCK_START_US in a programmatic dependent launch. Source: 0.82 to 0.84 us with 448 blocks of up
to 256 threads, 10.33 to 10.40 us with 8,192 (measured, docs/benchmarks.md)."""

PDL_FREE_BLOCKS_PER_SM = 2
"""FREE_BLOCKS_PER_SM in a programmatic dependent launch. Source: 0.57 us with one block, 0.83 with
448."""

ISSUE_SLOTS_PER_CLOCK = 4
"""Warp instructions that one SM issues in one clock. Source: CUDA C++ programming guide, four warp
schedulers from compute capability 7.0 on."""

SLOW_CLASS_CLOCKS = {"mufu": 2.0, "shfl": 1.0, "f2fp": 0.5, "lds": 1.0, "sts": 1.0}
"""SM clocks for one warp instruction of a class that fewer than 128 lanes serve. Source: CUDA C++
programming guide, table "Throughput of Native Arithmetic Instructions", compute capability 9.0: 16
special functions, 32 shuffles, 64 conversions a clock; shared memory 32 lanes of 4 bytes."""

OVERLAP_POWER = 3.0
"""Overlapping parts combine as (sum of t ** power) ** (1 / power): between their sum (1) and their
maximum (infinity), so that every part keeps some say. Estimated."""
