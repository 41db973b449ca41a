"""The time of a launch in a row of equal ones, from what one SM's warps do."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from kopt.config.gpu_specs import GpuSpec

from .block_starts import last_start
from .launch_path import LaunchPath, buffer_of
from .memory_share import SECTOR_BYTES, memory_share
from .sm_timing import time_sm
from .sm_work import MAX_STEPS, SmTiming, SmWork
from .steps import steps_of
from .timing_constants import Clocks

_CROWDED = 0.6
"""Share of the SMs that have a block from which on one that is placed early meets another."""


@dataclass(frozen=True)
class LaunchTime:
    """The time of a launch."""

    us: float
    launch_us: float
    """What an empty one in its place takes: the rest is work."""
    triggered_us: float
    """What it takes if it triggers the next launch at once."""
    timing: SmTiming


@dataclass(frozen=True)
class TimedLaunch:
    """A launch whose time can be told."""

    path: LaunchPath
    resident: int
    """Blocks that an SM holds at once."""
    unique_bytes: Mapping[str, int]
    """Bytes of each buffer, counted once."""
    gpu: GpuSpec
    smem_bytes: int = 0
    """Shared memory of a block: what the resident ones have, L1 has not."""
    most_steps: int = MAX_STEPS
    """Steps that are simulated."""

    def time(self, clocks: Clocks) -> LaunchTime:
        """Return the time from one such launch to the next, on buffers that no cache holds."""
        return self.time_of(self.work, clocks)

    def time_of(self, work: SmWork, clocks: Clocks, share: float | None = None) -> LaunchTime:
        """Return the time of other work in the place of the launch's own.

        A programmatic dependent launch may start once all blocks of the one before have triggered
        it, and goes on behind its wait once that one has ended.

        Args:
            work: Of the busiest SM.
            clocks: Constants.
            share: Part of the chip's memory that the SM has; None: as much as it has of the blocks.
        """
        memory = memory_share(self.gpu, share or self._share, clocks, self._first_touches)
        blocks = min(work.resident, len(work.blocks))
        memory.l1_sectors -= min(memory.l1_sectors, blocks * self.smem_bytes // SECTOR_BYTES)
        timing = time_sm(work, memory)
        us = 1 / self.gpu.clock_mhz
        if not self.path.launch.pdl:
            all_us = timing.ended * us + clocks.launch_us
            return LaunchTime(all_us, clocks.launch_us, all_us, timing)
        before_wait = timing.waited * us
        work_us = (timing.ended - timing.waited) * us
        work_us += clocks.early_placement_us if self._is_placed_early else 0.0
        trigger = (timing.triggered - timing.waited) * us
        by_work = work_us + clocks.completion_us
        by_trigger = trigger + clocks.early_launch_us + before_wait
        all_us = max(by_work, by_trigger)
        launch_us = clocks.completion_us if by_work >= by_trigger else clocks.early_launch_us
        at_once = max(by_work, min(trigger, 0.0) + clocks.early_launch_us + before_wait)
        return LaunchTime(all_us, launch_us, min(at_once, all_us), timing)

    @cached_property
    def work(self) -> SmWork:
        """What the busiest SM has to do."""
        path = self.path
        ways = {id(visits): visits for block in path.followed.values() for visits in block}
        known = {key: steps_of(path.code, visits) for key, visits in ways.items()}
        steps = {
            number: [known[id(visits)] for visits in block]
            for number, block in path.followed.items()
        }
        last = last_start(self.gpu, path.grid_blocks, is_early=path.launch.pdl)
        return SmWork(path.blocks, steps, self.resident, self.most_steps, last)

    @property
    def _share(self) -> float:
        return min(1.0, len(self.path.blocks) / self.path.grid_blocks)

    @cached_property
    def _is_placed_early(self) -> bool:
        """Whether the next launch's blocks are placed while this one's are there, one on most SMs.

        That takes longer, as measured; probably because they are then spread unevenly.
        """
        launch, sms = self.path.launch, self.gpu.sm_count
        if not launch.pdl or len(self.path.blocks) > 1 or prod(launch.grid) < _CROWDED * sms:
            return False
        first = next(iter(self.work.steps.values()))[0]
        kinds = [step.kind for step in first]
        triggers = "trigger" in kinds and "wait" in kinds
        return triggers and kinds.index("trigger") < kinds.index("wait")

    @cached_property
    def _first_touches(self) -> dict[int, float]:
        """Return by buffer which part of what an SM reads first no other SM has read before."""
        path = self.path
        touched: dict[int, int] = {}
        for block in self.work.steps.values():
            loads = {
                s for warp in block for step in warp if step.kind == "load" for s in step.sectors
            }
            for sector in loads:
                touched[buffer_of(sector)] = touched.get(buffer_of(sector), 0) + 1
        scale = path.grid_blocks / len(path.followed) * SECTOR_BYTES
        shares: dict[int, float] = {}
        for buffer, count in touched.items():
            unique = self.unique_bytes.get(path.bank.buffers.get(buffer, ""))
            shares[buffer] = 1.0 if unique is None else min(1.0, unique / (count * scale))
        return shares
