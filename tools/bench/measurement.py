"""Measuring in one open session: blocks of pairs until the verdict stands or the pairs run out.

It replays and counts; it knows sides by their places only and judges no outputs: `inspect` does,
which is given the outputs of one unforeseeable replay (of long kernels of two, unless few pairs are
enough), and of the last. The former ends a block that is broken off for it and does not count: were
it always the last of a block, a kernel that counts replays could tell it from those before. Blocks
that throttling or a change of clocks disturbed do not count.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from kopt.kernels.bench_result import LEAST_THRESHOLD, noise_threshold
from kopt.tools.devices.timer import (
    Replays,
    SetOutputs,
    Telemetry,
    TimingFailure,
    TimingSession,
    replay_each,
)

from .disturbances import is_disturbed
from .intervals import Interval, median_interval
from .pair_order import PAIRS_PER_BLOCK, Block, Pairing, make_block
from .verdict import decide, next_target

NOISE_PAIRS = 400
"""Pairs of A/A after which a floor stays as it is, however wide."""
OTHER_PAIRS = 20
"""Pairs after which a further comparison ends early, if the two are far apart."""
FAR_APART = 0.05
"""Log ratio, many times any threshold, beyond which the whole interval must lie for that: a closer
one is looked at as rarely as the main comparison, since each look is a chance to be wrong."""
LONG_S = 2.0
"""Where the least pairs would take longer, a measurement ends after OTHER_PAIRS if all its
comparisons are far apart: more pairs could turn none of them."""
BLOCKS_AT_ONCE = OTHER_PAIRS // PAIRS_PER_BLOCK
"""Blocks that a session is asked for in one call, at most: the way to another process or machine
takes longer than a block."""
SAMPLED_SETS = 16
"""Sets of the unforeseeable replay whose outputs are judged; of the last replay all are."""


@dataclass(frozen=True)
class SessionPlan:
    """What is measured in a session, by the places of its sides, and how much of it."""

    main: Pairing
    """Candidate and main baseline; decides when to stop."""
    empty: int
    """Replayed once in each block."""
    min_pairs: int
    max_pairs: int
    seed: int
    may_end_early: bool = False
    """Whether fewer than the least pairs are enough where they take long (`LONG_S`)."""
    others: tuple[Pairing, ...] = ()
    """Further comparisons, measured along with the main one while they are open."""
    noise: Pairing | None = None
    """Two captures of the main baseline; None where the floor is known."""
    threshold: float = LEAST_THRESHOLD
    """Least log ratio that counts, where `noise` is None."""


@dataclass
class Measurement:
    """What was measured so far."""

    log_ratios: dict[Pairing, list[float]] = field(default_factory=dict[Pairing, list[float]])
    """Log ratios of the pairs that count, in order."""
    dropped: dict[Pairing, int] = field(default_factory=dict[Pairing, int])
    """Pairs of disturbed blocks."""
    us_per_call: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """By side, of the replays that count."""
    telemetry: list[Telemetry] = field(default_factory=list[Telemetry])
    blocks: int = 0
    disturbed: int = 0
    """Blocks that do not count."""
    ended_far_apart: bool = False
    """Whether all ended before the least pairs, as LONG_S says."""

    def interval(self, pairing: Pairing, seed: int) -> Interval | None:
        """Return the interval of a comparison; None without pairs."""
        ratios = self.log_ratios.get(pairing)
        return median_interval(ratios, seed) if ratios else None

    def pairs(self, pairing: Pairing) -> int:
        """Return how many pairs count."""
        return len(self.log_ratios.get(pairing, ()))


Inspect = Callable[[SetOutputs], bool]
"""Judge the outputs of one replay of the candidate; False ends the measurement."""


def measure(
    session: TimingSession, plan: SessionPlan, inspect: Inspect
) -> Measurement | TimingFailure:
    """Return pairs of every comparison, extended while the main verdict is open.

    Disturbed blocks are replaced, up to half as many again; the caller sees in `pairs` whether
    enough count.
    """
    run = _Run(session, plan, inspect)
    if run.takes_long:
        failure = run.until(OTHER_PAIRS)
        if failure is not None:
            return failure
        if run.ended == "disturbed":  # of few blocks few are too many
            run.ended = None
        run.found.ended_far_apart = not run.ended and run.are_all_far_apart()
    target: int | None = None if run.found.ended_far_apart else plan.min_pairs
    while target is not None:
        failure = run.until(target)
        if failure is not None:
            return failure
        if run.ended or not run.is_open(target):
            break
        target = next_target(target, plan.max_pairs)
    return run.found if run.ended == "refused" else run.finish()


class _Run:
    """The measurement in progress."""

    def __init__(self, session: TimingSession, plan: SessionPlan, inspect: Inspect) -> None:
        self.found = Measurement()
        self.ended: Literal["refused", "disturbed"] | None = None
        self._session = session
        self._plan = plan
        self._inspect = inspect
        self._rng = np.random.default_rng(plan.seed)
        noise = () if plan.noise is None else (plan.noise,)
        self._pairings: tuple[Pairing, ...] = (plan.main, *noise, *plan.others)
        may_end_early = plan.may_end_early and plan.min_pairs > OTHER_PAIRS
        self.takes_long = may_end_early and self._seconds(plan.min_pairs) > LONG_S
        # Behind any block of a step but its last: that one is inspected anyway.
        steps = (0, OTHER_PAIRS, plan.min_pairs) if self.takes_long else (0, plan.min_pairs)
        bounds = [-(-pairs // PAIRS_PER_BLOCK) for pairs in steps]
        self._looked_behind = [
            int(self._rng.integers(first, last - 1)) for first, last in pairwise(bounds)
        ]

    def _seconds(self, pairs: int) -> float:
        """Return about how long so many pairs of every comparison take."""
        facts = self._session.facts
        pair_us = sum(
            facts.sides[one.candidate].call_us + facts.sides[one.baseline].call_us
            for one in self._pairings
        )
        return pairs * pair_us * facts.sets * 1e-6

    def is_open(self, measured: int) -> bool:
        """Return whether to measure on after `measured` pairs, and drop what is settled."""
        plan, threshold = self._plan, self._threshold()
        noise_is_open = threshold > LEAST_THRESHOLD and measured < NOISE_PAIRS
        kept = {other for other in plan.others if self._is_open(other, threshold)} | {plan.main}
        if plan.noise is not None and noise_is_open:
            kept.add(plan.noise)
        elif not self._is_open(plan.main, threshold):
            return False
        self._pairings = tuple(one for one in self._pairings if one in kept)
        return True

    def until(self, target: int) -> TimingFailure | None:
        """Measure until `target` pairs of the main comparison count, or too many are disturbed."""
        main = self._plan.main
        most_disturbed = -(-target // PAIRS_PER_BLOCK) // 2
        while self.ended is None and (missing := target - self.found.pairs(main)) > 0:
            if self.found.disturbed > most_disturbed:
                self.ended = "disturbed"
                return None
            failure = self._replay(missing)
            if failure is not None:
                return failure
            self._drop_far_apart()
        return None

    def _looked_at(self) -> tuple[int, ...]:
        """Return a block that ends with any of the candidate's replays, which is inspected."""
        candidate = self._plan.main.candidate
        sequence = make_block(self._pairings, self._rng, self._plan.empty).sequence
        places = [place for place, side in enumerate(sequence) if side == candidate]
        last: int = places[int(self._rng.integers(len(places)))]
        return tuple(sequence[: last + 1])

    def _look(self) -> TimingFailure | None:
        """Inspect the last replay of the call before, which is the candidate's."""
        # Drawn after the replay that is judged by them.
        sets: list[int] = self._rng.permutation(self._session.facts.sets)[:SAMPLED_SETS].tolist()
        outputs = self._session.collect(tuple(sets))
        if isinstance(outputs, TimingFailure):
            return outputs
        if not self._inspect(outputs):
            self.ended = "refused"
        return None

    def finish(self) -> Measurement | TimingFailure:
        """Inspect the last replay, which is the candidate's."""
        if self.ended == "disturbed":  # whatever block came last
            replays = self._session.replay((self._plan.main.candidate,))
            if isinstance(replays, TimingFailure):
                return replays
        outputs = self._session.collect()
        if isinstance(outputs, TimingFailure):
            return outputs
        self._inspect(outputs)
        return self.found

    def _drop_far_apart(self) -> None:
        """End further comparisons that nothing can turn: they cost as much as the main one."""
        others = self._plan.others
        self._pairings = tuple(
            one for one in self._pairings if one not in others or not self.is_far_apart(one)
        )

    def is_far_apart(self, pairing: Pairing) -> bool:
        """Return whether nothing can turn a comparison any more."""
        if self.found.pairs(pairing) < OTHER_PAIRS:
            return False
        interval = self.found.interval(pairing, self._plan.seed)
        far = max(FAR_APART, self._threshold())
        return interval is not None and (interval.low > far or interval.high < -far)

    def are_all_far_apart(self) -> bool:
        """Return whether nothing can turn any comparison any more."""
        return all(self.is_far_apart(one) for one in (self._plan.main, *self._plan.others))

    def _replay(self, missing: int) -> TimingFailure | None:
        """Measure some blocks, none beyond that which is looked behind; `missing` pairs at most.

        What is looked at ends the same call: nothing but its end tells it from a block that counts.
        """
        begun = self.found.blocks
        count = min(-(-missing // PAIRS_PER_BLOCK), BLOCKS_AT_ONCE - begun % BLOCKS_AT_ONCE)
        looked_behind = next((block for block in self._looked_behind if block >= begun), None)
        if looked_behind is not None:
            count = min(count, looked_behind + 1 - begun)
        blocks = [
            make_block(
                self._pairings,
                self._rng,
                self._plan.empty,
                # Outputs are inspected behind the last one.
                self._plan.main.candidate if (place + 1) * PAIRS_PER_BLOCK >= missing else None,
            )
            for place in range(count)
        ]
        sequences: list[Sequence[int]] = [block.sequence for block in blocks]
        is_looked_behind = looked_behind is not None and looked_behind < begun + count
        if is_looked_behind:
            sequences.append(self._looked_at())
        measured = replay_each(self._session, sequences)
        if isinstance(measured, TimingFailure):
            return measured
        for block, replays in zip(blocks, measured[:count], strict=True):
            self._count(block, replays)
        return self._look() if is_looked_behind else None

    def _count(self, block: Block, replays: Replays) -> None:
        found = self.found
        found.blocks += 1
        found.telemetry += (replays.before, replays.after)
        ratios = block.log_ratios(replays.us_per_call)
        if is_disturbed(replays):
            found.disturbed += 1
            for pairing, values in ratios.items():
                found.dropped[pairing] = found.dropped.get(pairing, 0) + len(values)
            return
        for pairing, values in ratios.items():
            found.log_ratios.setdefault(pairing, []).extend(values)
        for side, time_us in zip(block.sequence, replays.us_per_call, strict=True):
            found.us_per_call.setdefault(side, []).append(time_us)

    def _threshold(self) -> float:
        noise = self._plan.noise
        interval = None if noise is None else self.found.interval(noise, self._plan.seed)
        if interval is None:
            return self._plan.threshold
        return noise_threshold(interval.median, interval.half_width)

    def _is_open(self, pairing: Pairing, threshold: float) -> bool:
        interval = self.found.interval(pairing, self._plan.seed)
        return interval is not None and decide(interval, threshold) is None
