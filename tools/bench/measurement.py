"""Measuring in one open session: blocks of pairs until the verdict stands or the pairs run out.

It replays and counts; it knows sides by their places only and judges no outputs: `inspect` does,
which is given the outputs of one unforeseeable replay, and of the last. The former ends a block
that is broken off for it and does not count: were it always the last of a block, a kernel that
counts replays could tell it from those before. Blocks that throttling or a change of clocks
disturbed do not count.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from kopt.kernels.bench_result import LEAST_THRESHOLD, DeviceState, noise_threshold
from kopt.tools.devices.timer import Replays, SetOutputs, Telemetry, TimingFailure, TimingSession

from .intervals import Interval, median_interval
from .pair_order import PAIRS_PER_BLOCK, Pairing, make_block
from .verdict import decide, next_target

NOISE_PAIRS = 400
"""Pairs of A/A after which a floor stays as it is, however wide."""
OTHER_PAIRS = 20
"""Pairs after which a further comparison ends early, if the two are far apart."""
FAR_APART = 0.05
"""Log ratio, many times any threshold, beyond which the whole interval must lie for that: a closer
one is looked at as rarely as the main comparison, since each look is a chance to be wrong."""
SAMPLED_SETS = 16
"""Sets of the unforeseeable replay whose outputs are judged; of the last replay all are."""


@dataclass(frozen=True)
class Sides:
    """What the places of a session mean."""

    main: Pairing
    """Candidate and main baseline; decides when to stop."""
    empty: int
    """Replayed once in each block."""
    others: tuple[Pairing, ...] = ()
    """Further comparisons, measured along with the main one while they are open."""
    noise: Pairing | None = None
    """Two captures of the main baseline; None where the floor is known."""


@dataclass(frozen=True)
class Limits:
    """How much is measured."""

    min_pairs: int
    max_pairs: int
    threshold: float
    """Least log ratio that counts, where `Sides.noise` is None."""
    seed: int


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
    session: TimingSession, sides: Sides, limits: Limits, inspect: Inspect
) -> Measurement | TimingFailure:
    """Return pairs of every comparison, extended while the main verdict is open.

    Disturbed blocks are replaced, up to half as many again; the caller sees in `pairs` whether
    enough count.
    """
    run = _Run(session, sides, limits)
    target: int | None = limits.min_pairs
    # Behind any block of the first step but its last: that one is inspected anyway.
    planned = -(-limits.min_pairs // PAIRS_PER_BLOCK)
    chosen = int(run.rng.integers(planned - 1))
    while target is not None:
        failure = run.until(target, chosen, inspect)
        if failure is not None:
            return failure
        if run.ended or not run.is_open(target):
            break
        target = next_target(target, limits.max_pairs)
    return run.found if run.ended == "refused" else run.finish(inspect)


class _Run:
    """The measurement in progress."""

    def __init__(self, session: TimingSession, sides: Sides, limits: Limits) -> None:
        self.found = Measurement()
        self.rng = np.random.default_rng(limits.seed)
        self.ended: Literal["refused", "disturbed"] | None = None
        self._session = session
        self._sides = sides
        self._limits = limits
        noise = () if sides.noise is None else (sides.noise,)
        self._pairings: tuple[Pairing, ...] = (sides.main, *noise, *sides.others)

    def is_open(self, measured: int) -> bool:
        """Return whether to measure on after `measured` pairs, and drop what is settled."""
        main, noise = self._sides.main, self._sides.noise
        threshold = self._threshold()
        noise_is_open = noise is not None and threshold > LEAST_THRESHOLD and measured < NOISE_PAIRS
        if not self._is_open(main, threshold) and not noise_is_open:
            return False
        open_others = {other for other in self._sides.others if self._is_open(other, threshold)}
        kept = {main, *open_others, *((noise,) if noise is not None and noise_is_open else ())}
        self._pairings = tuple(one for one in self._pairings if one in kept)
        return True

    def until(self, target: int, chosen: int, inspect: Inspect) -> TimingFailure | None:
        """Measure until `target` pairs of the main comparison count, or too many are disturbed."""
        main = self._sides.main
        wanted = -(-target // PAIRS_PER_BLOCK)
        while (missing := target - self.found.pairs(main)) > 0:
            if self.found.disturbed > wanted // 2:
                self.ended = "disturbed"
                return None
            is_chosen = self.found.blocks == chosen
            failure = self._replay(main.candidate if missing <= PAIRS_PER_BLOCK else None)
            if failure is None:
                self._drop_far_apart()
                failure = self._look(inspect) if is_chosen else None
            if failure is not None:
                return failure
            if self.ended is not None:
                return None
        return None

    def _look(self, inspect: Inspect) -> TimingFailure | None:
        """Inspect any of the candidate's replays of a block; the block ends with it."""
        candidate = self._sides.main.candidate
        sequence = make_block(self._pairings, self.rng, self._sides.empty).sequence
        places = [place for place, side in enumerate(sequence) if side == candidate]
        last: int = places[int(self.rng.integers(len(places)))]
        replays = self._session.replay(sequence[: last + 1])
        if isinstance(replays, TimingFailure):
            return replays
        outputs = self._session.collect(self._sample())
        if isinstance(outputs, TimingFailure):
            return outputs
        if not inspect(outputs):
            self.ended = "refused"
        return None

    def _sample(self) -> tuple[int, ...]:
        """Draw sets, after the replay that is judged by them."""
        sets = self._session.facts.sets
        drawn: list[int] = self.rng.permutation(sets)[:SAMPLED_SETS].tolist()
        return tuple(drawn)

    def finish(self, inspect: Inspect) -> Measurement | TimingFailure:
        """Inspect the last replay, which is the candidate's."""
        if self.ended == "disturbed":  # whatever block came last
            replays = self._session.replay((self._sides.main.candidate,))
            if isinstance(replays, TimingFailure):
                return replays
        outputs = self._session.collect()
        if isinstance(outputs, TimingFailure):
            return outputs
        inspect(outputs)
        return self.found

    def _drop_far_apart(self) -> None:
        """End further comparisons that nothing can turn: they cost as much as the main one."""
        far = {other for other in self._sides.others if self._is_far_apart(other)}
        self._pairings = tuple(one for one in self._pairings if one not in far)

    def _is_far_apart(self, pairing: Pairing) -> bool:
        if pairing not in self._pairings or self.found.pairs(pairing) < OTHER_PAIRS:
            return False
        interval = self.found.interval(pairing, self._limits.seed)
        return interval is not None and (interval.low > FAR_APART or interval.high < -FAR_APART)

    def _replay(self, last: int | None) -> TimingFailure | None:
        block = make_block(self._pairings, self.rng, self._sides.empty, last)
        replays = self._session.replay(block.sequence)
        if isinstance(replays, TimingFailure):
            return replays
        found = self.found
        found.blocks += 1
        found.telemetry += (replays.before, replays.after)
        ratios = block.log_ratios(replays.us_per_call)
        if is_disturbed(replays):
            found.disturbed += 1
            for pairing, values in ratios.items():
                found.dropped[pairing] = found.dropped.get(pairing, 0) + len(values)
            return None
        for pairing, values in ratios.items():
            found.log_ratios.setdefault(pairing, []).extend(values)
        self._keep_times(block.sequence, replays)
        return None

    def _keep_times(self, sequence: Sequence[int], replays: Replays) -> None:
        for side, time_us in zip(sequence, replays.us_per_call, strict=True):
            self.found.us_per_call.setdefault(side, []).append(time_us)

    def _threshold(self) -> float:
        if self._sides.noise is None:
            return self._limits.threshold
        interval = self.found.interval(self._sides.noise, self._limits.seed)
        if interval is None:
            return self._limits.threshold
        return noise_threshold(interval.median, interval.half_width)

    def _is_open(self, pairing: Pairing, threshold: float) -> bool:
        interval = self.found.interval(pairing, self._limits.seed)
        return interval is not None and decide(interval, threshold) is None


_CLOCK_CHANGE = 0.03


def is_disturbed(replays: Replays) -> bool:
    """Return whether a throttle reason was active or a clock changed by more than 3 %.

    What NVML does not say disturbs nothing.
    """
    before, after = replays.before, replays.after
    return (
        bool(before.throttle or after.throttle)
        or _changed(before.sm_mhz, after.sm_mhz)
        or _changed(before.memory_mhz, after.memory_mhz)
    )


def _changed(before: int | None, after: int | None) -> bool:
    if before is None or after is None:
        return False
    return abs(after - before) > _CLOCK_CHANGE * before


def device_state(telemetry: Sequence[Telemetry]) -> DeviceState:
    """Return the extremes over all of `telemetry`."""
    return DeviceState(
        sm_mhz=_range(entry.sm_mhz for entry in telemetry),
        memory_mhz=_range(entry.memory_mhz for entry in telemetry),
        temperature_c=_range(entry.temperature_c for entry in telemetry),
        throttle=tuple(dict.fromkeys(name for entry in telemetry for name in entry.throttle)),
        other_processes=max(
            (entry.other_processes for entry in telemetry if entry.other_processes is not None),
            default=None,
        ),
    )


def _range(values: Iterable[int | None]) -> tuple[int, int] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None
