"""The time of one SM's warps: a simulation of events, in clocks from the start of the first block.

Four schedulers issue an instruction a clock each. A warp waits for its scoreboards, barriers, the
fetch of its code and the pipes; loads go through the load/store unit, then the SM's intake, L2 and
DRAM, each of which is taken for as long as it needs for the bytes. L2 and DRAM are the SM's share:
the blocks of the SM of all blocks.
"""

import heapq
from dataclasses import replace

from .instructions import NO_SCOREBOARD
from .memory_share import SECTOR_BYTES, MemoryShare
from .residents import ResidentBlock, ResidentWarp, Scoreboard
from .sm_work import SmTiming, SmWork, Unit
from .steps import Kind, WarpStep
from .waits import Reason

_SCHEDULERS = 4
_SECTORS_A_CLOCK = 4
_OPERANDS_READ = 10
_BARRIERS: tuple[Kind, ...] = ("barrier", "cluster_barrier")


class _Sm:
    def __init__(self, work: SmWork, memory: MemoryShare) -> None:
        self._work, self._memory, self._clocks = work, memory, memory.clocks
        self._next = 0
        self._live: dict[int, ResidentBlock] = {}
        self._done = 0
        self._events: list[tuple[float, int, ResidentWarp]] = []
        self._serial = 0
        self._issue_free = [0.0] * _SCHEDULERS
        self._issue_busy = [0.0] * _SCHEDULERS
        self._pipe_free: list[dict[int, float]] = [{} for _ in range(_SCHEDULERS)]
        self._pipe_busy: list[dict[int, float]] = [{} for _ in range(_SCHEDULERS)]
        self._fetched: dict[int, float] = {}
        self._fetch_free = 0.0
        self._unit_free = 0.0
        self._unit_busy = 0.0
        self.timing = SmTiming()

    def run(self) -> SmTiming:
        for _ in range(min(self._work.resident, len(self._work.blocks))):
            self._start_block(0.0, is_first=True)
        while self._events and self._done < self._work.most:
            now, _, warp = heapq.heappop(self._events)
            self._advance(warp, now)
            if not self._events:
                self._release_stuck(now)
        timing = self.timing
        timing.ended = max(timing.ended, self._memory.drained)
        timing.busy = self._busy()
        if self._events:
            rest = max(1.0, self._steps_of_all / self._done)
            ended = max(timing.ended, self._events[0][0]) * rest
            timing.triggered = timing.ended = ended
            timing.busy = {name: clocks * rest for name, clocks in timing.busy.items()}
        timing.ended = max(timing.ended, self._work.last_start)
        return timing

    def _busy(self) -> dict[Unit, float]:
        pipes = (clocks for taken in self._pipe_busy for clocks in taken.values())
        return {
            "dram": self._memory.dram_busy,
            "l2": self._memory.l2_busy,
            "sm_intake": self._memory.intake_busy,
            "load_store": self._unit_busy,
            "issue": max(*self._issue_busy, *pipes),
        }

    @property
    def _steps_of_all(self) -> float:
        known = [sum(map(len, warps)) for warps in self._work.steps.values()]
        return len(self._work.blocks) * sum(known) / len(known)

    def _release_stuck(self, now: float) -> None:
        """Let go on who waits for what nobody is left to bring, so that no work is left out."""
        stuck: list[ResidentWarp] = []
        for block in self._live.values():
            stuck += (warp for waiting in block.waiting.values() for warp in waiting)
            block.waiting.clear()
        for warp in stuck:
            self._go_on(warp, now)

    def _start_block(self, now: float, *, is_first: bool) -> None:
        number = self._work.blocks[self._next]
        model = min(self._work.steps, key=lambda known: abs(known - number))
        self._next += 1
        steps = self._work.steps[model]
        stores = sum(any(step.kind == "remote_store" for step in warp) for warp in steps)
        place = (self._next - 1) % self._work.resident
        block = ResidentBlock(
            number, place, steps, number - model, is_first, now, len(steps), stores
        )
        self._live[id(block)] = block
        for warp in steps:
            self._serial += 1
            self._push(now, ResidentWarp(block, warp, self._serial % _SCHEDULERS, self._serial))

    def _push(self, when: float, warp: ResidentWarp) -> None:
        heapq.heappush(self._events, (when, warp.serial, warp))

    def _advance(self, warp: ResidentWarp, now: float) -> None:
        step = warp.steps[warp.place]
        if step.waits:
            last = max(
                (board for b, board in enumerate(warp.boards) if step.waits >> b & 1),
                key=lambda board: board.ready,
            )
            if last.ready > now:
                self.timing.waits.add(last.reason, last.index, last.ready - now)
                self._push(last.ready, warp)
                return
        issued = self._issue(warp, step, now)
        on = issued + step.clocks
        if step.pipes:
            taken = self._take_pipes(warp.scheduler, step, issued)
            self.timing.waits.add("pipe", step.index, taken - on)
            on = max(on, taken)
        later = self._carry_out(warp, step, issued)
        if later is not None:
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
        self.timing.waits.add("issue", step.index, issued - now)
        there = issued
        for line in step.lines:
            there = max(there, self._fetch(line, there))
        self.timing.waits.add("fetch", step.index, there - issued)
        self._issue_free[warp.scheduler] = there + step.slots
        self._issue_busy[warp.scheduler] += step.slots
        return there

    def _fetch(self, line: int, now: float) -> float:
        found = self._fetched.get(line)
        if found is None:
            first = 0.0 if self._fetched else self._clocks.first_fetch
            self._fetch_free = max(self._fetch_free, now) + self._clocks.fetch + first
            self._fetched[line] = found = self._fetch_free
        return found

    def _take_pipes(self, scheduler: int, step: WarpStep, issued: float) -> float:
        """Take the pipes and return when the last instruction was taken in."""
        free, busy = self._pipe_free[scheduler], self._pipe_busy[scheduler]
        last = 0.0
        for clocks, taken in step.pipes.items():
            end = max(free.get(clocks, 0.0), issued) + taken
            free[clocks] = end
            busy[clocks] = busy.get(clocks, 0.0) + taken
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
            case "copy_group":
                warp.groups.append(replace(warp.copied))
            case "copy_wait":
                return self._copied(warp, step.groups, issued)
            case "wait" | "trigger":
                self._note(warp.block, step.kind, issued)
            case _:
                self._set(warp, step, issued + self._clocks.of(step.latency))
        return 0.0

    def _access(self, warp: ResidentWarp, step: WarpStep, issued: float) -> None:
        """Send an access through the load/store unit."""
        is_global = step.kind in ("load", "store")
        taken = max(1.0, len(step.sectors) / _SECTORS_A_CLOCK if is_global else step.passes)
        self._unit_busy += taken
        self._unit_free = max(self._unit_free, issued) + taken
        if step.kind == "load":
            there = self._memory.load(self._unit_free, step.sectors, warp.block.shift)
            self._set(warp, step, there, "memory")
            if step.is_copy:
                self._bring(warp.copied, there, "memory", step)
        elif step.kind == "store":
            count = SECTOR_BYTES * max(1, len(step.sectors))
            stored = self._memory.store(self._unit_free, count)
            warp.block.stored = max(warp.block.stored, stored)
        else:
            there = self._unit_free + self._clocks.of(step.kind)
            self._set(warp, step, max(there, self._own_memory(step, warp.block.place)), "shared")
        if step.frees < NO_SCOREBOARD - 1:
            self._bring(warp.boards[step.frees], self._unit_free + _OPERANDS_READ, "shared", step)

    def _own_memory(self, step: WarpStep, place: int) -> float:
        """Return when what a step puts aside or takes back of the threads' own memory is there."""
        if not step.is_local:
            return 0.0
        if step.sets == NO_SCOREBOARD:
            self._memory.put_aside(self._unit_free, step.sectors, place)
            return 0.0
        return self._memory.take_back(self._unit_free, step.sectors, place)

    def _copied(self, warp: ResidentWarp, groups: int, issued: float) -> float:
        """Return when all copies of a warp are there but those of its last `groups`."""
        ended = warp.groups[: len(warp.groups) - groups]
        if not ended:
            return 0.0
        self.timing.waits.add(ended[-1].reason, ended[-1].index, ended[-1].ready - issued)
        return ended[-1].ready

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
            return self._arrived(block) if block.sent else 0.0
        warp.stopped = issued
        block.waiting[kind].append(warp)
        if kind != "arrival":
            self._release_full(block, issued)
        return None

    def _set(
        self, warp: ResidentWarp, step: WarpStep, when: float, reason: Reason = "result"
    ) -> None:
        if step.sets < NO_SCOREBOARD - 1:
            self._bring(warp.boards[step.sets], when, reason, step)

    def _bring(self, board: Scoreboard, when: float, reason: Reason, step: WarpStep) -> None:
        if when > board.ready:
            board.ready, board.reason, board.index = when, reason, step.index

    def _send(self, block: ResidentBlock, issued: float) -> None:
        block.sent = max(block.sent, issued)
        block.remote_stores -= 1
        if block.remote_stores <= 0:
            self._wake(block, "arrival", self._arrived(block))

    def _arrived(self, block: ResidentBlock) -> float:
        """Return when what all blocks of the cluster send has come, some later than this one's."""
        later = self._clocks.cluster_skew * (block.sent - block.started)
        return block.sent + later + self._clocks.cluster

    def _wake(self, block: ResidentBlock, kind: Kind, when: float) -> None:
        """Let all go on that wait for this."""
        reason: Reason = "barrier" if kind == "barrier" else "cluster"
        for warp in block.waiting.pop(kind, []):
            self.timing.waits.add(reason, warp.steps[warp.place].index, when - warp.stopped)
            self._go_on(warp, when)

    def _release_full(self, block: ResidentBlock, now: float) -> None:
        """Let go on who waits at a barrier to which every warp that is left has come."""
        for kind in _BARRIERS:
            waiting = block.waiting[kind]
            if waiting and len(waiting) >= block.alive:
                self._wake(block, kind, now + self._clocks.of(kind))

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
        if self._next < len(self._work.blocks):
            self._start_block(now + self._clocks.block_start, is_first=False)


def time_sm(work: SmWork, memory: MemoryShare) -> SmTiming:
    """Return when the blocks of an SM came where.

    Args:
        work: What they do.
        memory: What the SM has of the chip's memory; is used up.
    """
    return _Sm(work, memory).run()
