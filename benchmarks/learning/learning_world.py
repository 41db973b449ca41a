"""A world whose gains are known, to see what a search with memory makes of it.

Programs have a state, techniques have a gain in each state on each architecture, kernels deviate
from it, candidates fail, measurements are noisy, and a gain may lead to another state. Nothing of
this is known to the search. All that happens follows from the seed: two searches that try the
same technique on the same kernel as often get the same result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random

ARCHITECTURES = ("sm_90a", "sm_100a")
CLEAR = 0.02
"""ln ratio: a smaller change is none, as `min_effect` of config/search.yaml."""


@dataclass(frozen=True)
class Assumptions:
    """What the world is like. Gains and spreads are ln ratios, the rest are shares 0 to 1."""

    states: int = 16
    bottlenecks: int = 6
    techniques: int = 45
    applicable: float = 0.6
    """Techniques that can be applied to a kernel."""
    good: float = 0.15
    """Techniques that gain in a state."""
    bad: float = 0.35
    """Techniques that lose in a state; what is left has no effect."""
    gain: float = 0.18
    """Mean size of a gain or loss, at least 0.04, exponentially distributed above."""
    alike: float = 0.5
    """Chance that a technique has in a state what it has in others of the same bottleneck."""
    arch_change: float = 0.2
    """Chance that the effect of a technique in a state is drawn anew for another architecture."""
    kernel_spread: float = 0.08
    """Standard deviation of an effect from kernel to kernel."""
    failure: float = 0.3
    """Mean chance that a candidate fails; of a technique, twice a beta(2, 2) draw times it."""
    noise: float = 0.01
    """Standard deviation of a measured ratio."""
    moves: float = 0.6
    """Chance that a gain leads to another state, one of three that follow a state."""
    pairs: float = 0.02
    """Share of ordered pairs in which the first adds `pair_gain` to an effect of the second."""
    pair_gain: float = 0.15


@dataclass(frozen=True)
class Kernel:
    """What is to be made faster."""

    name: str
    start: str
    """State of the starting program."""
    allowed: tuple[str, ...]
    """Techniques that can be applied."""


@dataclass(frozen=True)
class Program:
    """A program on the way."""

    state: str
    gain: float = 0.0
    """ln ratio over the starting program, as it truly is."""
    applied: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    """Techniques tried from it, one entry a try."""

    @property
    def previous(self) -> str | None:
        """Return the technique that made it."""
        return self.applied[-1] if self.applied else None


@dataclass(frozen=True)
class Attempt:
    """What came of a technique."""

    measured: float | None
    """ln ratio with noise; None: the candidate failed."""
    child: Program | None
    """Only of what was measured."""


@dataclass(frozen=True)
class World:
    """The truth."""

    seed: str
    assumed: Assumptions
    bottleneck_of: Mapping[str, int]
    effects: Mapping[tuple[str, str, str], float]
    """Architecture, state, technique -> mean ln ratio; 0: no effect."""
    failure_of: Mapping[str, float]
    followers: Mapping[str, tuple[str, ...]]
    paired: frozenset[tuple[str, str]]
    techniques: tuple[str, ...] = field(default=())

    def kernel(self, number: int) -> Kernel:
        """Return kernel `number`; the same on every architecture."""
        rng = Random(f"{self.seed}/kernel/{number}")
        start = rng.choice(sorted(self.bottleneck_of))
        count = round(self.assumed.applicable * len(self.techniques))
        allowed = tuple(sorted(rng.sample(self.techniques, count)))
        return Kernel(f"kernel_{number}", start, allowed)

    def effect(self, arch: str, kernel: Kernel, program: Program, technique: str) -> float:
        """Return what `technique` truly does; applied once more it does nothing."""
        mean = self.effects[arch, program.state, technique]
        if mean == 0 or technique in program.applied:
            return 0.0
        place = f"{self.seed}/{arch}/{kernel.name}/{program.state}/{technique}"
        extra = self.assumed.pair_gain * ((program.previous, technique) in self.paired)
        return mean + extra + self.assumed.kernel_spread * _deviation(place)

    def value(self, arch: str, kernel: Kernel, program: Program, technique: str) -> float:
        """Return what a try is truly worth: the chance not to fail x the gain, if it is one."""
        gain = self.effect(arch, kernel, program, technique)
        return (1 - self.failure_of[technique]) * max(0.0, gain)

    def tried(self, arch: str, kernel: Kernel, program: Program, technique: str) -> Attempt:
        """Return what comes of `technique`, applied to `program`."""
        again = program.tried.count(technique)
        place = f"{self.seed}/{arch}/{kernel.name}/{'+'.join(program.applied)}/{technique}/{again}"
        rng = Random(place)
        if rng.random() < self.failure_of[technique]:
            return Attempt(None, None)
        gain = self.effect(arch, kernel, program, technique)
        moves = gain > CLEAR and rng.random() < self.assumed.moves
        state = rng.choice(self.followers[program.state]) if moves else program.state
        child = Program(state, program.gain + gain, (*program.applied, technique))
        return Attempt(gain + rng.gauss(0, self.assumed.noise), child)


@cache
def _deviation(place: str) -> float:
    """Return a normal variate that belongs to `place`."""
    return Random(place).gauss(0, 1)


def make_world(seed: str, assumed: Assumptions) -> World:
    """Return the world that `seed` makes."""
    rng = Random(seed)
    states = [f"state_{number:02}" for number in range(assumed.states)]
    techniques = tuple(f"technique_{number:02}" for number in range(assumed.techniques))
    bottleneck_of = {state: n % assumed.bottlenecks for n, state in enumerate(states)}
    return World(
        seed=seed,
        assumed=assumed,
        bottleneck_of=bottleneck_of,
        effects=_effects(rng, assumed, bottleneck_of, techniques),
        failure_of={
            one: min(0.95, 2 * assumed.failure * rng.betavariate(2, 2)) for one in techniques
        },
        followers={state: tuple(rng.sample(states, 3)) for state in states},
        paired=frozenset(
            (before, after)
            for before in techniques
            for after in techniques
            if before != after and rng.random() < assumed.pairs
        ),
        techniques=techniques,
    )


def _effects(
    rng: Random,
    assumed: Assumptions,
    bottleneck_of: Mapping[str, int],
    techniques: tuple[str, ...],
) -> dict[tuple[str, str, str], float]:
    found: dict[tuple[str, str, str], float] = {}
    for technique in techniques:
        shared = [_effect(rng, assumed) for _ in range(assumed.bottlenecks)]
        for state, bottleneck in bottleneck_of.items():
            own = shared[bottleneck] if rng.random() < assumed.alike else _effect(rng, assumed)
            for arch in ARCHITECTURES:
                other = arch != ARCHITECTURES[0] and rng.random() < assumed.arch_change
                found[arch, state, technique] = _effect(rng, assumed) if other else own
    return found


def _effect(rng: Random, assumed: Assumptions) -> float:
    size = 0.04 + rng.expovariate(1 / (assumed.gain - 0.04))
    kind = rng.random()
    if kind < assumed.good:
        return size
    return -size if kind < assumed.good + assumed.bad else 0.0
