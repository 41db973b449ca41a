"""Predictions: the expected gain of techniques in a situation, from all evidence of a base."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from kopt.kernels.record import Record
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import counted, pooled
from kopt.search.knowledge.records import Evidence, KnowledgeEntry, Techniques

from .belief import Belief
from .kinship import arch_spread, kin_of, supports, trust_in_priors

COMPOSITE_FACTOR = 0.8
"""Factor on the sum of gains when techniques are mixed: they partly save the same time."""
COMPOSITE_WEIGHT = 1.0
"""Tries that such a sum counts as."""
OTHER_CHECKS = 0.25
"""Variance of the chance to pass between states and architectures, in that of single tries.

How hard a technique is to write is more its own than how much it gains: what failed elsewhere
counts, at most as 4 tries (`kinship.py`)."""
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
    tries: int
    """In this state on this architecture."""
    sources: tuple[str, ...]


def predict(base: KnowledgeBase, situation: Situation, techniques: Techniques) -> Prediction:
    """Return what `techniques` are expected to do; several are a composite, in order."""
    return prediction_of(Predictor(base, situation).known(techniques))


def prediction_of(known: Expectation) -> Prediction:
    """Return the numbers of `known` that are shown and kept."""
    return Prediction(
        gain=known.belief.mean,
        sd=known.belief.sd,
        interval=known.belief.interval,
        works=known.belief.works,
        tries=known.tries,
        sources=known.sources,
    )


class Predictor:
    """Looks techniques up for one situation; what they share is found once."""

    def __init__(self, base: KnowledgeBase, situation: Situation) -> None:
        """Read `base` for `situation`."""
        self._base = base
        self._situation = situation
        self._kin = kin_of(base, situation.state)
        self._trust = trust_in_priors(base)
        self._entries = defaultdict[Techniques, list[KnowledgeEntry]](list)
        for entry in base.entries.values():
            self._entries[entry.techniques].append(entry)

    def known(self, techniques: Techniques) -> Expectation:
        """Return what is known of `techniques`; several are a composite, in order."""
        alone = self._alone(techniques)
        previous = self._situation.previous
        first, *others = techniques
        if others or previous is None:
            return alone
        extra = self.extra(previous, first)
        if extra == 0:
            return alone
        sources = (*alone.sources, f"after {previous}")
        return Expectation(alone.belief.shifted(extra), alone.tries, sources)

    def extra(self, before: str, after: str) -> float:
        """Return what `before` is known to add to the gain of `after`, ln; 0 if nothing is known.

        Args:
            before: Technique applied first.
            after: Technique applied next.
        """
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

    def _checked(self, techniques: Techniques) -> tuple[tuple[Evidence, float], ...]:
        """Return the tries of this state and architecture and all others, with what they count."""
        own: list[Evidence] = []
        others: list[Evidence] = []
        for entry in self._entries.get(techniques, ()):
            for key, origins in entry.evidence.items():
                is_own = (entry.state, key) == (self._situation.state, self._situation.arch_key)
                (own if is_own else others).append(counted(origins, self._base.origin))
        elsewhere = pooled(others)
        return (pooled(own), 1.0), (elsewhere, 1 / (1 + elsewhere.tries * OTHER_CHECKS))

    def _alone(self, techniques: Techniques) -> Expectation:
        """Return what is known of `techniques`, whatever was applied before them."""
        belief, expected_by = self._expected(techniques)
        tries = 0
        sources: list[str] = []
        for support in supports(self._base, self._kin, self._situation.arch_key, techniques):
            belief = belief.after(support.evidence, support.share, support.factor)
            tries += support.tries if support.is_own else 0
            sources.append(support.source)
        for checked, share in self._checked(techniques):
            belief = belief.after_checks(checked, share)
        return Expectation(belief, tries, (*sources, *expected_by))

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
