"""Predictions: the expected gain of techniques in a situation, from all evidence of a base.

Evidence of the same state and architecture counts in full. Other evidence differs by more than
chance: by the variance between architectures or states. However much of it there is, it says no
more than that variance allows: `n` tries count as `n / (1 + n x spread)`, and never as more than
`1 / spread`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from kopt.kernels.record import Record
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import counted, pooled
from kopt.search.knowledge.records import ESTIMATED, Evidence, KnowledgeEntry, Techniques

from .belief import Belief

TRUSTED_TRIES = 4.0
"""Kept promises that priors are trusted with in advance."""
OTHER_ARCH = 0.25
"""Variance of a gain between architectures, in that of single gains: at most 4 tries' worth."""
OTHER_PROVENANCE = 0.5
"""Variance between the simulator's estimates and a GPU's measurements: at most 2 tries' worth."""
INHERITED = 0.25
"""Variance between a discovered state and the one it inherits from."""
INHERITED_GAIN = 0.8
"""Factor on a gain for each step of inheritance (KernelBlaster: 0.8)."""
SAME_BOTTLENECK = 1.0
"""Variance between states that share no more than a bottleneck: at most one try's worth."""
SAME_BOTTLENECK_GAIN = 0.5
"""Factor on a gain from such a state."""
COMPOSITE_FACTOR = 0.8
"""Factor on the sum of gains when techniques are mixed: they partly save the same time."""
COMPOSITE_WEIGHT = 1.0
"""Tries that such a sum counts as."""
OTHER_CHECKS = 0.25
"""Variance of the chance to pass between states and architectures, in that of single tries.

How hard a technique is to write is more its own than how much it gains: what failed elsewhere
counts, at most as 4 tries."""
PAIR_WEIGHT = 2.0
"""Tries of a pair after which what it adds is believed by half."""


@dataclass(frozen=True)
class Situation:
    """The state, architecture and history of the program that a technique is applied to."""

    arch_key: str
    """`records.arch_key`: evidence of this key counts in full."""
    state: str
    """Id of the state of the program."""
    previous: str | None = None
    """Technique that made the program; None for a starting program."""
    used: tuple[str, ...] = ()
    """Techniques tried from this program or applied on the way to it, one entry for each use."""


class Prediction(Record):
    """The expected gain of a technique, given that it has an effect; ln ratios."""

    gain: float
    """Expected ln(speed after / speed before)."""
    sd: float
    """Standard deviation of `gain`: how well it is known."""
    interval: tuple[float, float]
    """95 % interval of the next gain."""
    works: float
    """Chance that a try passes the checks and has an effect that noise does not explain, 0 to 1."""
    tries: int
    """Tries in this state on this architecture."""
    sources: tuple[str, ...]
    """Evidence and priors behind it, nearest first; empty where nothing is known."""


@dataclass(frozen=True)
class Expectation:
    """The belief about techniques in a situation, with its sources."""

    belief: Belief
    tries: int = 0
    """In this state on this architecture."""
    sources: tuple[str, ...] = ()

    @property
    def prediction(self) -> Prediction:
        """The numbers that are shown and kept."""
        return Prediction(
            gain=self.belief.mean,
            sd=self.belief.sd,
            interval=self.belief.interval,
            works=self.belief.works,
            tries=self.tries,
            sources=self.sources,
        )


def predict(base: KnowledgeBase, situation: Situation, techniques: Techniques) -> Prediction:
    """Return what `techniques` are expected to do; several are a composite, in order."""
    return Predictor(base, situation).known(techniques).prediction


def trust_in_priors(base: KnowledgeBase) -> float:
    """Return what a prior's weight is multiplied by, 0 to 1.

    A prior promises a gain or a loss. The share of tries that passed the checks and kept the
    promise, over all entries and architectures: priors have common sources, so that those that
    were tried speak for those that were not. One that broke its promise is also outweighed by its
    own evidence; this is for the others.
    """
    kept = passed = 0
    for entry in base.entries.values():
        for origins in entry.evidence.values() if entry.prior else ():
            found = counted(origins, base.origin)
            kept += found.gained if entry.prior and entry.prior.gain > 0 else found.lost
            passed += found.tries - found.failed
    return (TRUSTED_TRIES + kept) / (TRUSTED_TRIES + passed)


def arch_spread(arch: str, other: str) -> float:
    """Return the variance between two architecture keys, in that of single gains; 0: the same."""
    spread = OTHER_ARCH * (arch.removesuffix(ESTIMATED) != other.removesuffix(ESTIMATED))
    return spread + OTHER_PROVENANCE * (arch.endswith(ESTIMATED) != other.endswith(ESTIMATED))


@dataclass(frozen=True)
class _Kin:
    """States whose evidence counts alike in a situation."""

    states: tuple[str, ...]
    spread: float
    """Variance towards the situation's state, in that of single gains."""
    factor: float
    """Factor on their gains."""
    label: str
    """For the list of sources; empty for the state itself."""
    is_line: bool = True
    """Whether it is the state itself or one that it inherits from: their priors count."""


def _kin_of(base: KnowledgeBase, state: str) -> tuple[_Kin, ...]:
    """Return the state, what it inherits from and the states of its bottleneck, in this order."""
    found = [_Kin((state,), 0.0, 1.0, "")]
    line = [one.id for one in base.ancestry(state) if one.id != state]
    for step, other in enumerate(line, start=1):
        found.append(_Kin((other,), step * INHERITED, INHERITED_GAIN**step, f"inherits {other}"))
    known = base.states.get(state)
    if known is not None and known.bottleneck != "unknown":
        others = tuple(
            other.id
            for other in base.states.values()
            if other.bottleneck == known.bottleneck and other.id not in (state, *line)
        )
        label = f"other {known.bottleneck} states"
        found.append(_Kin(others, SAME_BOTTLENECK, SAME_BOTTLENECK_GAIN, label, False))
    return tuple(found)


class Predictor:
    """Looks techniques up for one situation; what they share is found once."""

    def __init__(self, base: KnowledgeBase, situation: Situation) -> None:
        """Read `base` for `situation`."""
        self._base = base
        self._situation = situation
        self._kin = _kin_of(base, situation.state)
        self._trust = trust_in_priors(base)
        self._entries = defaultdict[Techniques, list[KnowledgeEntry]](list)
        for entry in base.entries.values():
            self._entries[entry.techniques].append(entry)

    def known(self, techniques: Techniques) -> Expectation:
        """Return what is known of `techniques`; several are a composite, in order."""
        alone = self._alone(techniques)
        previous = self._situation.previous
        extra = self.extra(previous, techniques[0]) if previous and len(techniques) == 1 else 0.0
        if extra == 0:
            return alone
        sources = (*alone.sources, f"after {previous}")
        return replace(alone, belief=alone.belief.shifted(extra), sources=sources)

    def extra(self, before: str, after: str) -> float:
        """Return what the technique `before` adds to the gain of `after`, ln; 0 if not known."""
        pair = self._base.pairs.get((before, after))
        if pair is None:
            return 0.0
        total, weight = 0.0, PAIR_WEIGHT
        if pair.prior:
            total += pair.prior.weight * pair.prior.gain
            weight += pair.prior.weight
        for key, origins in sorted(pair.evidence.items()):
            found = counted(origins, self._base.origin)
            spread = arch_spread(self._situation.arch_key, key)
            more = found.weight / (1 + found.weight * spread)
            total += more * found.mean
            weight += more
        return total / weight

    def _alone(self, techniques: Techniques) -> Expectation:
        """Return what is known of `techniques`, whatever was applied before them."""
        belief, expected_by = self._expected(techniques)
        known = Expectation(belief)
        for group in self._kin:
            known = self._supported(known, group, techniques)
        belief = known.belief
        for checked, share in self._checked(techniques):
            belief = belief.after_checks(checked, share)
        return Expectation(belief, known.tries, (*known.sources, *expected_by))

    def _supported(self, known: Expectation, group: _Kin, techniques: Techniques) -> Expectation:
        """Return `known` with the evidence of some states, of the nearest architectures first."""
        bodies = defaultdict[float, list[tuple[str, Mapping[str, Evidence]]]](list)
        for state in group.states:
            entry = self._base.entries.get((state, techniques))
            for key, origins in entry.evidence.items() if entry else ():
                bodies[arch_spread(self._situation.arch_key, key)].append((key, origins))
        for between, several in sorted(bodies.items(), key=lambda item: item[0]):
            evidence = pooled(counted(origins, self._base.origin) for _, origins in several)
            tries = sum(one.tries for _, origins in several for one in origins.values())
            spread = group.spread + between
            where = ", ".join(dict.fromkeys(key for key, _ in several))
            label = f" ({group.label})" if group.label else ""
            source = f"{where}{label}: {tries} {'try' if tries == 1 else 'tries'}"
            known = Expectation(
                known.belief.after(evidence, 1 / (1 + evidence.tries * spread), group.factor),
                known.tries + (tries if spread == 0 else 0),
                (*known.sources, source),
            )
        return known

    def _checked(self, techniques: Techniques) -> tuple[tuple[Evidence, float], ...]:
        """Return the tries of this state and architecture and all others, with what they count."""
        here = self._situation.state, self._situation.arch_key
        own: list[Evidence] = []
        others: list[Evidence] = []
        for entry in self._entries.get(techniques, ()):
            for key, origins in entry.evidence.items():
                found = counted(origins, self._base.origin)
                (own if (entry.state, key) == here else others).append(found)
        elsewhere = pooled(others)
        return (pooled(own), 1.0), (elsewhere, 1 / (1 + elsewhere.tries * OTHER_CHECKS))

    def _expected(self, techniques: Techniques) -> tuple[Belief, tuple[str, ...]]:
        """Return the belief before evidence of `techniques` themselves, and where it is from."""
        if len(techniques) > 1:
            steps = pairwise((self._situation.previous, *techniques))
            gain = COMPOSITE_FACTOR * sum(self._step(before, after) for before, after in steps)
            return Belief().expecting(gain, COMPOSITE_WEIGHT), ("the gains of its parts",)
        for kin in self._kin:
            entry = self._base.entries.get((kin.states[0], techniques)) if kin.is_line else None
            if entry and entry.prior:
                prior = entry.prior
                believed = Belief().expecting(kin.factor * prior.gain, self._trust * prior.weight)
                return believed, ("prior",)
        return Belief(), ()

    def _step(self, before: str | None, after: str | None) -> float:
        """Return the gain that is expected of a part of a composite."""
        if after is None:
            return 0.0
        alone = self._alone((after,)).belief.mean
        return alone if before is None else alone + self.extra(before, after)
