"""Launches that do not exist: one trait of a launch taken away, to ask the time model again.

Each function changes one thing and leaves the rest as it is, also where no compiler could: an
answer says how much a trait matters to the estimate, not what a rewrite would reach. None says that
the launch has no such trait.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, prod

from kopt.tools.estimate.machine.launch_path import buffer_of
from kopt.tools.estimate.machine.machine_time import LaunchTime, TimedLaunch
from kopt.tools.estimate.machine.residents import BlockSteps
from kopt.tools.estimate.machine.sm_work import SmWork
from kopt.tools.estimate.machine.steps import Kind, WarpStep
from kopt.tools.estimate.machine.timing_constants import Clocks

WIDE_BYTES = 16
"""What a lane loads or stores at once at most."""
_ENDLESS = 1e9
_GLOBAL: tuple[Kind, ...] = ("load", "store")


@dataclass(frozen=True)
class Told:
    """A launch with its time."""

    launch: TimedLaunch
    time: LaunchTime


@dataclass(frozen=True)
class Without:
    """A launch without a trait."""

    work: SmWork
    clocks: Clocks = field(default_factory=Clocks)
    places: Mapping[int, float] = field(default_factory=dict[int, float])
    """By place of an instruction, how much of the trait is there."""
    share: float | None = None
    """Part of the chip's memory that the SM has then; None: what it has."""

    def us(self, launch: TimedLaunch) -> float:
        """Return what `launch` takes then."""
        return launch.time_of(self.work, self.clocks, self.share).us


WhatIf = Callable[[Told], Without | None]


def memory_latency(told: Told) -> Without:
    """Data from memory are there as soon as they were moved."""
    clocks = replace(Clocks(), dram=0.0, l2=0.0, l1=0.0)
    return Without(told.launch.work, clocks, told.time.timing.waits.at("memory"))


def dram_bandwidth(told: Told) -> Without:
    """DRAM moves any number of bytes at once."""
    clocks = replace(Clocks(), dram_efficiency=_ENDLESS)
    return Without(told.launch.work, clocks, told.time.timing.waits.at("memory"))


def l2_bandwidth(told: Told) -> Without:
    """L2 and the SM's intake move any number of bytes at once."""
    clocks = replace(Clocks(), l2_bytes=_ENDLESS, intake=_ENDLESS)
    return Without(told.launch.work, clocks, told.time.timing.waits.at("memory"))


def code_fetch(told: Told) -> Without:
    """Machine code is there when it is needed."""
    clocks = replace(Clocks(), fetch=0.0)
    return Without(told.launch.work, clocks, told.time.timing.waits.at("fetch"))


def cluster_exchange(told: Told) -> Without | None:
    """Blocks of a cluster hear of each other at once."""
    if prod(told.launch.path.launch.cluster) == 1:
        return None
    clocks = replace(Clocks(), cluster=0.0, cluster_skew=0.0, cluster_barrier=0.0)
    return Without(told.launch.work, clocks, told.time.timing.waits.at("cluster"))


def block_starts(told: Told) -> Without | None:
    """All blocks are handed out at once."""
    work = told.launch.work
    return Without(replace(work, last_start=0.0)) if work.last_start else None


def occupancy(told: Told) -> Without | None:
    """As many blocks are resident as the SM has threads for."""
    work, gpu = told.launch.work, told.launch.gpu
    most = min(gpu.max_threads_per_sm // prod(told.launch.path.launch.block), gpu.max_blocks_per_sm)
    if work.resident >= min(most, len(work.blocks)):
        return None
    return Without(replace(work, resident=most))


def even_blocks(told: Told) -> Without | None:
    """Every SM has the same share of the work: loops of the busiest one run that much shorter."""
    launch, work = told.launch, told.launch.work
    sms = launch.gpu.sm_count
    fraction = launch.path.grid_blocks / sms / len(work.blocks)

    def shortened(warp: Sequence[WarpStep]) -> tuple[Sequence[WarpStep], Counter[int]]:
        times = Counter(step.index for step in warp)
        gone: Counter[int] = Counter()
        kept: list[WarpStep] = []
        for step in warp:
            gone[step.index] += 1
            if gone[step.index] <= ceil(fraction * times[step.index]):
                kept.append(step)
        return kept, Counter()

    if fraction >= 1:
        return None
    return replace(_changed(work, _each_warp(shortened)), share=1 / sms)


def instructions(told: Told) -> Without:
    """Instructions take no time of their own."""
    found = _each_step(
        told.launch.work, lambda step: replace(step, slots=0, clocks=0, pipes={}), lambda _: 0
    )
    followed = told.launch.path.followed.values()
    visits = Counter(visit.index for block in followed for warp in block for visit in warp)
    return replace(found, places=visits)


def coalesced(told: Told) -> Without | None:
    """Every access in as few sectors as could carry its bytes."""
    return _where(
        told.launch.work,
        lambda step: len(step.sectors) - step.least if step.kind in _GLOBAL else 0,
        lambda step: replace(step, sectors=step.sectors[: step.least]),
    )


def conflict_free(told: Told) -> Without | None:
    """Every shared access in as few passes as could carry its bytes."""
    return _where(
        told.launch.work,
        lambda step: step.passes - step.least if step.kind == "shared" else 0,
        lambda step: replace(step, passes=step.least),
    )


def without_spills(told: Told) -> Without | None:
    """Nothing lies in the threads' own memory."""
    return _where(told.launch.work, lambda step: step.passes if step.is_local else 0, _nothing)


def without_barriers(told: Told) -> Without | None:
    """Warps of a block do not wait for each other."""
    found = _where(told.launch.work, lambda step: step.kind == "barrier", _nothing)
    return found and replace(found, places=told.time.timing.waits.at("barrier"))


def wide(told: Told) -> Without | None:
    """Narrow accesses to a buffer are joined, as they come, to ones of 16 bytes a lane."""
    found = _changed(told.launch.work, _each_warp(_joined))
    return found if found.places else None


def read_once(told: Told) -> Without | None:
    """A block does not load again what it has loaded."""
    found = _changed(told.launch.work, _loaded_once)
    return found if found.places else None


Changed = tuple[BlockSteps, Counter[int]]
"""Steps of a block, and by instruction how much of them was changed."""


def _changed(work: SmWork, change: Callable[[BlockSteps], Changed]) -> Without:
    """Return the work with each block changed."""
    amounts: Counter[int] = Counter()
    steps: dict[int, BlockSteps] = {}
    for number, warps in work.steps.items():
        steps[number], amount = change(warps)
        amounts.update(amount)
    return Without(replace(work, steps=steps), places=amounts)


def _each_warp(
    change: Callable[[Sequence[WarpStep]], tuple[Sequence[WarpStep], Counter[int]]],
) -> Callable[[BlockSteps], Changed]:
    """Return what changes each warp of a block, equal ones once."""
    known: dict[int, tuple[Sequence[WarpStep], Counter[int]]] = {}

    def changed(warps: BlockSteps) -> Changed:
        amounts: Counter[int] = Counter()
        found: list[Sequence[WarpStep]] = []
        for warp in warps:
            if id(warp) not in known:
                known[id(warp)] = change(warp)
            steps, amount = known[id(warp)]
            found.append(steps)
            amounts.update(amount)
        return found, amounts

    return changed


def _each_step(
    work: SmWork, change: Callable[[WarpStep], WarpStep], amount: Callable[[WarpStep], int]
) -> Without:
    """Return the work with each step changed; `amount` says how much of one is."""

    def changed(warp: Sequence[WarpStep]) -> tuple[Sequence[WarpStep], Counter[int]]:
        amounts: Counter[int] = Counter()
        for step in warp:
            amounts[step.index] += amount(step)
        return [change(step) for step in warp], +amounts

    return _changed(work, _each_warp(changed))


def _where(
    work: SmWork, amount: Callable[[WarpStep], int], change: Callable[[WarpStep], WarpStep]
) -> Without | None:
    """Return the work with the steps changed of which `amount` is above 0; None if of none is."""
    found = _each_step(work, lambda step: change(step) if amount(step) > 0 else step, amount)
    return found if found.places else None


def _nothing(step: WarpStep) -> WarpStep:
    """Return a step in the place of `step` that takes no time."""
    return WarpStep(index=step.index, waits=step.waits)


def _joined(warp: Sequence[WarpStep]) -> tuple[Sequence[WarpStep], Counter[int]]:
    amounts: Counter[int] = Counter()
    begun: dict[tuple[Kind, int, int], tuple[int, int]] = {}
    found: list[WarpStep] = []
    for step in warp:
        each = WIDE_BYTES // step.lane_bytes if step.lane_bytes and step.kind in _GLOBAL else 1
        if each <= 1 or not step.sectors:
            found.append(step)
            continue
        key = (step.kind, buffer_of(step.sectors[0]), step.lane_bytes)
        place, count = begun.get(key, (0, each))
        if count == each:
            begun[key] = (len(found), 1)
            found.append(step)
            continue
        begun[key] = (place, count + 1)
        first = found[place]
        sectors = tuple(dict.fromkeys((*first.sectors, *step.sectors)))
        found[place] = replace(first, sectors=sectors)
        amounts[step.index] += 1
        found.append(_nothing(step))
    return found, amounts


def _loaded_once(warps: BlockSteps) -> Changed:
    amounts: Counter[int] = Counter()
    loaded: set[int] = set()
    found: list[Sequence[WarpStep]] = []
    for warp in warps:
        steps: list[WarpStep] = []
        for step in warp:
            if step.kind == "load" and step.sectors and loaded.issuperset(step.sectors):
                amounts[step.index] += len(step.sectors)
                steps.append(_nothing(step))
                continue
            if step.kind == "load":
                loaded.update(step.sectors)
            steps.append(step)
        found.append(steps)
    return found, amounts
