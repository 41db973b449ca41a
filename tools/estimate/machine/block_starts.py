"""When the blocks of a grid are handed out to the SMs."""

from kopt.config.gpu_specs import GpuSpec

_START_US, _FREE_PER_SM = 0.0006, 3
"""Between the starts of two blocks, over the whole GPU, but for those that each SM gets at once.
Source: on an H100 an empty kernel of 1,024 blocks takes 1.16 to 1.26 us, one of 8,192 takes 5.48 to
5.52 us with 32 to 256 threads a block, and 0.84 with one block (measured, docs/benchmarks.md)."""
_EARLY_START_US, _EARLY_FREE_PER_SM = 0.00123, 2
"""The same of a programmatic dependent launch. Source: 0.57 us with one block, 0.82 to 0.84 with
448 of up to 256 threads, 10.33 to 10.40 us with 8,192 (measured, docs/benchmarks.md)."""


def last_start(gpu: GpuSpec, blocks: int, *, is_early: bool) -> float:
    """Return the SM clock before which the last block of a grid cannot start.

    Args:
        gpu: Its SMs and clock.
        blocks: Of the grid.
        is_early: Whether the launch is by programmatic dependent launch.
    """
    start_us, free = (
        (_EARLY_START_US, _EARLY_FREE_PER_SM) if is_early else (_START_US, _FREE_PER_SM)
    )
    return max(0, blocks - free * gpu.sm_count) * start_us * gpu.clock_mhz
