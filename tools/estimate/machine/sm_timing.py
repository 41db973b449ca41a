"""The time of one SM's warps: a simulation of events, in clocks from the start of the first block.

Four schedulers issue an instruction a clock each. A warp waits for its scoreboards, barriers, the
fetch of its code and the pipes; loads go through the load/store unit, then the SM's intake, L2 and
DRAM, each of which is taken for as long as it needs for the bytes. L2 and DRAM are the SM's share:
the blocks of the SM of all blocks.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .instructions import NO_SCOREBOARD
from .launch_path import buffer_of
from .memory_share import MemoryShare
from .residents import BlockSteps, ResidentBlock, ResidentWarp
from .steps import Kind, WarpStep

_SCHEDULERS = 4
_SECTOR_BYTES = 32
_SECTORS_A_CLOCK = 4
_OPERANDS_READ = 10
MAX_STEPS = 150_000
"""Steps that are simulated of a launch, if no other number is given: a second or less."""
_BARRIERS: tuple[Kind, ...] = ("barrier", "cluster_barrier")


@dataclass
class SmTiming:
    """When things happened, in clocks."""

    waited: float = 0.0
    """When the blocks that start first came to the wait for the launch before; 0 without one."""
    triggered: float = 0.0
    """When the last block had triggered the next launch, or ended."""
    ended: float = 0.0
    """When the last block had ended, and its bytes were through."""


class _Sm:
    def __init__(
        self,
        blocks: Sequence[int],
        steps: Mapping[int, BlockSteps],
        resident: int,
        memory: MemoryShare,
        most: int,
    ) -> None:
        self._blocks, self._steps = blocks, steps
        self._resident, self._memory, self._clocks = resident, memory, memory.clocks
        self._most = most
        self._next = 0
        self._live: dict[int, ResidentBlock] = {}
        self._done = 0
        self._events: list[tuple[float, int, ResidentWarp]] = []
        self._serial = 0
        self._issue_free = [0.0] * _SCHEDULERS
        self._pipe_free: list[dict[int, float]] = [{} for _ in range(_SCHEDULERS)]
        self._fetched: dict[int, float] = {}
        self._fetch_free = 0.0
        self._unit_free = 0.0
        self._cached: dict[tuple[int, int], float] = {}
        self.timing = SmTiming()

    def run(self) -> SmTiming:
        for _ in range(min(self._resident, len(self._blocks))):
            self._start_block(0.0, is_first=True)
        while self._events and self._done < self._most:
            now, _, warp = heapq.heappop(self._events)
            self._advance(warp, now)
            if not self._events:
                self._release_stuck(now)
        timing = self.timing
        timing.ended = max(timing.ended, self._memory.drained)
        if self._events:
            ended = max(timing.ended, self._events[0][0]) * max(
                1.0, self._steps_of_all / self._done
            )
            timing.triggered = timing.ended = ended
        return timing

    @property
    def _steps_of_all(self) -> float:
        known = [sum(map(len, warps)) for warps in self._steps.values()]
        return len(self._blocks) * sum(known) / len(known)

    def _release_stuck(self, now: float) -> None:
        """Let go on who waits for what nobody is left to bring, so that no work is left out."""
        stuck: list[ResidentWarp] = []
        for block in self._live.values():
            stuck += (warp for waiting in block.waiting.values() for warp in waiting)
            block.waiting.clear()
        for warp in stuck:
            self._go_on(warp, now)

    def _start_block(self, now: float, *, is_first: bool) -> None:
        number = self._blocks[self._next]
        model = min(self._steps, key=lambda known: abs(known - number))
        self._next += 1
        steps = self._steps[model]
        stores = sum(any(step.kind == "remote_store" for step in warp) for warp in steps)
        block = ResidentBlock(number, steps, number - model, is_first, len(steps), stores)
        self._live[id(block)] = block
        for warp in steps:
            self._serial += 1
            self._push(now, ResidentWarp(block, warp, self._serial % _SCHEDULERS, self._serial))

    def _push(self, when: float, warp: ResidentWarp) -> None:
        heapq.heappush(self._events, (when, warp.serial, warp))

    def _advance(self, warp: ResidentWarp, now: float) -> None:
        step = warp.steps[warp.place]
        if step.waits:
            needed = max(time for b, time in enumerate(warp.boards) if step.waits >> b & 1)
            if needed > now:
                self._push(needed, warp)
                return
        issued = self._issue(warp, step, now)
        on = issued + step.clocks
        if step.pipes:
            on = max(on, self._take_pipes(warp.scheduler, step, issued))
        later = self._carry_out(warp, step, issued)
        if later is None:
            return
        self._go_on(warp, max(on, later))

    def _go_on(self, warp: ResidentWarp, when: float) -> None:
        warp.place += 1
        self._done += 1
        if warp.place < len(warp.steps):
            self._push(when, warp)
        else:
            self._end_warp(warp.block, when)

    def _issue(self, warp: ResidentWarp, step: WarpStep, now: float) -> float:
        issued = max(now, self._issue_free[warp.scheduler])
        for line in step.lines:
            issued = max(issued, self._fetch(line, issued))
        self._issue_free[warp.scheduler] = issued + step.slots
        return issued

    def _fetch(self, line: int, now: float) -> float:
        found = self._fetched.get(line)
        if found is None:
            first = 0.0 if self._fetched else self._clocks.first_fetch
            self._fetch_free = max(self._fetch_free, now) + self._clocks.fetch + first
            self._fetched[line] = found = self._fetch_free
        return found

    def _take_pipes(self, scheduler: int, step: WarpStep, issued: float) -> float:
        """Take the pipes and return when the last instruction was taken in."""
        free, last = self._pipe_free[scheduler], 0.0
        for clocks, taken in step.pipes.items():
            end = max(free.get(clocks, 0.0), issued) + taken
            free[clocks] = end
            last = max(last, end - clocks)
        return last

    def _carry_out(self, warp: ResidentWarp, step: WarpStep, issued: float) -> float | None:
        """Do what a step does; return when the warp may go on, None if something else wakes it."""
        match step.kind:
            case "load" | "store" | "shared" | "shuffle":
                self._access(warp, step, issued)
            case "barrier" | "cluster_barrier" | "arrival":
                return self._meet(warp, step.kind, issued)
            case "remote_store":
                self._send(warp.block, issued)
            case "wait" | "trigger":
                self._note(warp.block, step.kind, issued)
            case _:
                self._set(warp, step.sets, issued + self._clocks.of(step.latency))
        return 0.0

    def _access(self, warp: ResidentWarp, step: WarpStep, issued: float) -> None:
        """Send an access through the load/store unit."""
        is_global = step.kind in ("load", "store")
        taken = len(step.sectors) / _SECTORS_A_CLOCK if is_global else step.passes
        self._unit_free = max(self._unit_free, issued) + max(1.0, taken)
        if step.kind == "load":
            self._set(warp, step.sets, self._load(warp.block, step))
        elif step.kind == "store":
            count = _SECTOR_BYTES * max(1, len(step.sectors))
            stored = self._memory.store(self._unit_free, count)
            warp.block.stored = max(warp.block.stored, stored)
        else:
            self._set(warp, step.sets, self._unit_free + self._clocks.of(step.kind))
        self._set(warp, step.frees, self._unit_free + _OPERANDS_READ)

    def _note(self, block: ResidentBlock, kind: Kind, issued: float) -> None:
        """Note when a block came to its wait or its trigger."""
        if kind == "trigger":
            block.triggered = max(block.triggered or 0.0, issued)
        elif block.is_first:
            self.timing.waited = max(self.timing.waited, issued)

    def _meet(self, warp: ResidentWarp, kind: Kind, issued: float) -> float | None:
        """Have a warp wait for others, or for what they send; None while it does."""
        block = warp.block
        if kind == "arrival" and block.remote_stores <= 0:
            return block.sent + self._clocks.cluster if block.sent else 0.0
        block.waiting[kind].append(warp)
        if kind != "arrival":
            self._release_full(block, issued)
        return None

    def _set(self, warp: ResidentWarp, board: int, when: float) -> None:
        if board < NO_SCOREBOARD - 1:
            warp.boards[board] = max(warp.boards[board], when)

    def _load(self, block: ResidentBlock, step: WarpStep) -> float:
        """Return when the bytes are there; what the SM has asked for before comes with it."""
        ready = self._unit_free + self._clocks.l1
        missed: list[tuple[int, int]] = []
        for sector in step.sectors:
            found = self._cached.get((sector, block.shift))
            if found is None:
                missed.append((sector, block.shift))
            else:
                ready = max(ready, found)
        if missed:
            share = self._memory.first_touch(buffer_of(missed[0][0]))
            there = self._memory.load(self._unit_free, _SECTOR_BYTES * len(missed), share)
            self._cached.update(dict.fromkeys(missed, there))
            ready = max(ready, there)
        return ready

    def _send(self, block: ResidentBlock, issued: float) -> None:
        block.sent = max(block.sent, issued)
        block.remote_stores -= 1
        if block.remote_stores <= 0:
            for warp in block.waiting.pop("arrival", []):
                self._go_on(warp, block.sent + self._clocks.cluster)

    def _release_full(self, block: ResidentBlock, now: float) -> None:
        """Let go on who waits at a barrier to which every warp that is left has come."""
        for kind in _BARRIERS:
            waiting = block.waiting[kind]
            if waiting and len(waiting) >= block.alive:
                block.waiting[kind] = []
                for warp in waiting:
                    self._go_on(warp, now + self._clocks.of(kind))

    def _end_warp(self, block: ResidentBlock, now: float) -> None:
        block.alive -= 1
        if block.alive:
            self._release_full(block, now)
            return
        del self._live[id(block)]
        timing = self.timing
        timing.ended = max(timing.ended, now, block.stored)
        timing.triggered = max(
            timing.triggered, now if block.triggered is None else block.triggered
        )
        if self._next < len(self._blocks):
            self._start_block(now + self._clocks.block_start, is_first=False)


def time_sm(
    blocks: Sequence[int],
    steps: Mapping[int, BlockSteps],
    resident: int,
    memory: MemoryShare,
    most: int = MAX_STEPS,
) -> SmTiming:
    """Return when the blocks of an SM came where.

    Args:
        blocks: Their numbers, in their order.
        steps: Of the warps of some blocks, by number; the others go by the steps of the nearest.
        resident: Blocks that the SM holds at once.
        memory: What the SM has of the chip's memory; is used up.
        most: Steps that are simulated; the others are taken to go on at the same pace.
    """
    return _Sm(blocks, steps, resident, memory, most).run()
