"""What one SM has of the chip's memory: its intake, and its share of L2 and DRAM."""

from collections.abc import Mapping
from dataclasses import dataclass

from kopt.config.gpu_specs import GpuSpec

from .timing_constants import Clocks


@dataclass
class MemoryShare:
    """Queues of bytes, each of which is free again once they were moved; in clocks."""

    l2_bytes_a_clock: float
    dram_bytes_a_clock: float
    clocks: Clocks
    shares: Mapping[int, float]
    """By buffer, the part of what the SM reads first that no other SM has read before: DRAM's."""
    _intake_free: float = 0.0
    _l2_free: float = 0.0
    _dram_free: float = 0.0

    @property
    def drained(self) -> float:
        """When all bytes were through."""
        return max(self._l2_free, self._dram_free)

    def first_touch(self, buffer: int) -> float:
        """Return the part of first reads of a buffer that are DRAM's."""
        return self.shares.get(buffer, 1.0)

    def load(self, now: float, count: int, dram_share: float) -> float:
        """Return when `count` bytes are there, of which DRAM has to read `dram_share`."""
        self._intake_free = max(self._intake_free, now) + count / self.clocks.intake
        self._l2_free = max(self._l2_free, now) + count / self.l2_bytes_a_clock
        moved = max(self._intake_free, self._l2_free)
        if dram_share <= 0.0:
            return moved + self.clocks.l2
        self._dram_free = max(self._dram_free, now) + count * dram_share / self.dram_bytes_a_clock
        return max(moved, self._dram_free) + self.clocks.dram

    def store(self, now: float, count: int) -> float:
        """Return when `count` bytes are in L2; DRAM is taken for them as well."""
        self._l2_free = max(self._l2_free, now) + count / self.l2_bytes_a_clock
        self._dram_free = max(self._dram_free, now) + count / self.dram_bytes_a_clock
        return self._l2_free


def memory_share(
    gpu: GpuSpec, share: float, clocks: Clocks, shares: Mapping[int, float]
) -> MemoryShare:
    """Return what an SM with `share` of all blocks has of the memory of `gpu`."""
    dram = gpu.dram_bandwidth_gb_s * 1e3 / gpu.clock_mhz * clocks.dram_efficiency
    return MemoryShare(
        l2_bytes_a_clock=min(clocks.l2_bytes * share, clocks.intake),
        dram_bytes_a_clock=min(dram * share, clocks.intake),
        clocks=clocks,
        shares=shares,
    )
