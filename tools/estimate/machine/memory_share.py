"""What one SM has of the chip's memory: its L1 and its intake, and its share of L2 and DRAM."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kopt.config.gpu_specs import GpuSpec

from .launch_path import buffer_of
from .timing_constants import Clocks

SECTOR_BYTES = 32
Sector = tuple[int, int]
"""A sector of 32 bytes: its number, and the blocks by which the block that asks is shifted."""


@dataclass
class MemoryShare:
    """Queues of bytes, each of which is free again once they were moved; in clocks."""

    l2_bytes_a_clock: float
    dram_bytes_a_clock: float
    clocks: Clocks
    shares: Mapping[int, float]
    """By buffer, the part of what the SM reads first that no other SM has read before: DRAM's."""
    l2_rate: float
    dram_rate: float
    """Bytes a clock that L2 and DRAM have for its part of the work, however few SMs share it."""
    l1_sectors: int
    """Sectors that L1 keeps: those that came last."""
    intake_busy: float = 0.0
    l2_busy: float = 0.0
    dram_busy: float = 0.0
    _intake_free: float = 0.0
    _l2_free: float = 0.0
    _dram_free: float = 0.0
    _kept: OrderedDict[Sector, float] = field(default_factory=OrderedDict[Sector, float])
    """When a sector in L1 has come, or will."""
    _known: set[Sector] = field(default_factory=set[Sector])
    """What the SM has asked L2 for."""
    _own: OrderedDict[Sector, None] = field(default_factory=OrderedDict[Sector, None])
    """What L1 has of the threads' own memory, used least recently first."""

    @property
    def drained(self) -> float:
        """When all bytes were through."""
        return max(self._l2_free, self._dram_free)

    def load(self, now: float, sectors: Iterable[int], shift: int) -> float:
        """Return when the sectors are there; those that L1 has or waits for come with it."""
        ready = now + self.clocks.l1
        first: list[Sector] = []
        again: list[Sector] = []
        for number in sectors:
            sector = (number, shift)
            found = self._kept.get(sector)
            if found is not None:
                ready = max(ready, found)
            else:
                (again if sector in self._known else first).append(sector)
        if first:
            share = self.shares.get(buffer_of(first[0][0]), 1.0)
            ready = max(ready, self._fetch(now, first, share))
        if again:
            ready = max(ready, self._fetch(now, again, 0.0))
        return ready

    def _fetch(self, now: float, sectors: list[Sector], dram_share: float) -> float:
        """Return when sectors are there, of which DRAM has to read `dram_share`; keep them."""
        there = self._move(now, SECTOR_BYTES * len(sectors), dram_share)
        self._known.update(sectors)
        self._kept.update(dict.fromkeys(sectors, there))
        while len(self._kept) > self.l1_sectors:
            self._kept.popitem(last=False)
        return there

    def put_aside(self, now: float, sectors: Iterable[int], place: int) -> None:
        """Write sectors of the threads' own memory, through L1 to L2.

        It is as large as the resident threads need it: what is written for the first time comes
        beside the tensors and drives others out of L2, to DRAM.
        """
        own = [(number, place) for number in sectors]
        first = sum(sector not in self._known for sector in own)
        self._known.update(own)
        self.store(now, SECTOR_BYTES * first)
        self._write_to_l2(now, SECTOR_BYTES * (len(own) - first))
        self._use(own)

    def take_back(self, now: float, sectors: Iterable[int], place: int) -> float:
        """Return when sectors of the threads' own memory are there, from L1 or from L2."""
        own = [(number, place) for number in sectors]
        gone = sum(sector not in self._own for sector in own)
        self._use(own)
        return self._move(now, SECTOR_BYTES * gone, 0.0) if gone else now + self.clocks.l1

    def _use(self, own: Iterable[Sector]) -> None:
        for sector in own:
            self._own[sector] = None
            self._own.move_to_end(sector)
        while len(self._own) > self.l1_sectors:
            self._own.popitem(last=False)

    def _move(self, now: float, count: int, dram_share: float) -> float:
        intake, l2 = count / self.clocks.intake, count / self.l2_bytes_a_clock
        self.intake_busy += intake
        self.l2_busy += count / self.l2_rate
        self._intake_free = max(self._intake_free, now) + intake
        self._l2_free = max(self._l2_free, now) + l2
        moved = max(self._intake_free, self._l2_free)
        if dram_share <= 0.0:
            return moved + self.clocks.l2
        dram = count * dram_share / self.dram_bytes_a_clock
        self.dram_busy += count * dram_share / self.dram_rate
        self._dram_free = max(self._dram_free, now) + dram
        return max(moved, self._dram_free) + self.clocks.dram

    def store(self, now: float, count: int) -> float:
        """Return when `count` bytes are in L2; DRAM is taken for them as well."""
        dram = count / self.dram_bytes_a_clock
        self.dram_busy += count / self.dram_rate
        self._dram_free = max(self._dram_free, now) + dram
        return self._write_to_l2(now, count)

    def _write_to_l2(self, now: float, count: int) -> float:
        l2 = count / self.l2_bytes_a_clock
        self.l2_busy += count / self.l2_rate
        self._l2_free = max(self._l2_free, now) + l2
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
        l2_rate=clocks.l2_bytes * share,
        dram_rate=dram * share,
        l1_sectors=gpu.smem_per_sm_bytes // SECTOR_BYTES,
    )
