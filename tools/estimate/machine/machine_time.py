"""The time of a launch in a row of equal ones, from what one SM's warps do."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from kopt.config.gpu_specs import GpuSpec

from .launch_path import LaunchPath, buffer_of
from .memory_share import memory_share
from .residents import BlockSteps
from .sm_timing import MAX_STEPS, SmTiming, time_sm
from .steps import steps_of
from .timing_constants import Clocks

_SECTOR_BYTES = 32
_CROWDED = 0.6
"""Share of the SMs that have a block from which on one that is placed early meets another."""


@dataclass(frozen=True)
class TimedLaunch:
    """A launch whose time can be told."""

    path: LaunchPath
    resident: int
    """Blocks that an SM holds at once."""
    unique_bytes: Mapping[str, int]
    """Bytes of each buffer, counted once."""
    gpu: GpuSpec
    most_steps: int = MAX_STEPS
    """Steps that are simulated."""

    def time_us(self, clocks: Clocks) -> float:
        """Return the time from one such launch to the next, on buffers that no cache holds.

        A programmatic dependent launch may start once all blocks of the one before have triggered
        it, and goes on behind its wait once that one has ended.
        """
        timing = self._timing(clocks)
        us = 1 / self.gpu.clock_mhz
        if not self.path.launch.pdl:
            return timing.ended * us + clocks.launch_us
        before_wait = timing.waited * us
        work = (timing.ended - timing.waited) * us
        work += clocks.early_placement_us if self._is_placed_early else 0.0
        trigger = (timing.triggered - timing.waited) * us
        return max(work + clocks.completion_us, trigger + clocks.early_launch_us + before_wait)

    def _timing(self, clocks: Clocks) -> SmTiming:
        blocks = self.path.blocks
        share = min(1.0, len(blocks) / self.path.grid_blocks)
        memory = memory_share(self.gpu, share, clocks, self._first_touches)
        return time_sm(blocks, self._steps, self.resident, memory, self.most_steps)

    @cached_property
    def _steps(self) -> dict[int, BlockSteps]:
        code, followed = self.path.code, self.path.followed
        ways = {id(visits): visits for block in followed.values() for visits in block}
        known = {key: steps_of(code, visits) for key, visits in ways.items()}
        return {
            number: [known[id(visits)] for visits in block] for number, block in followed.items()
        }

    @cached_property
    def _is_placed_early(self) -> bool:
        """Whether the next launch's blocks are placed while this one's are there, one on most SMs.

        That takes longer, as measured; probably because they are then spread unevenly.
        """
        launch, sms = self.path.launch, self.gpu.sm_count
        if not launch.pdl or len(self.path.blocks) > 1 or prod(launch.grid) < _CROWDED * sms:
            return False
        first = next(iter(self._steps.values()))[0]
        kinds = [step.kind for step in first]
        triggers = "trigger" in kinds and "wait" in kinds
        return triggers and kinds.index("trigger") < kinds.index("wait")

    @cached_property
    def _first_touches(self) -> dict[int, float]:
        """Return by buffer which part of what an SM reads first no other SM has read before."""
        path = self.path
        touched: dict[int, int] = {}
        for block in self._steps.values():
            loads = {
                s for warp in block for step in warp if step.kind == "load" for s in step.sectors
            }
            for sector in loads:
                touched[buffer_of(sector)] = touched.get(buffer_of(sector), 0) + 1
        scale = path.grid_blocks / len(path.followed) * _SECTOR_BYTES
        shares: dict[int, float] = {}
        for buffer, count in touched.items():
            unique = self.unique_bytes.get(path.bank.buffers.get(buffer, ""))
            shares[buffer] = 1.0 if unique is None else min(1.0, unique / (count * scale))
        return shares
