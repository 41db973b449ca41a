"""What to expect of techniques in a situation, from everything that a base knows about them."""

from dataclasses import dataclass

from kopt.kernels.record import Record
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.records import Techniques

from .belief import Belief
from .kinship import arch_spread, kin_of, supports
from .update import pooled

COMPOSITE_FACTOR = 0.8
"""What is left of the sum of gains when techniques are mixed: they partly save the same time."""
COMPOSITE_WEIGHT = 1.0
"""Tries that such a sum counts as."""
PAIR_WEIGHT = 2.0
"""Tries of a pair after which what it adds is believed by half."""


@dataclass(frozen=True)
class Situation:
    """Where a technique is to be applied."""

    arch_key: str
    """`records.arch_key`: evidence of this key counts in full."""
    state: str
    """Id of the state of the program."""
    previous: str | None = None
    """Technique that made the program; None for a starting program."""
    used: tuple[str, ...] = ()
    """Techniques tried from this program or applied on the way to it, one entry for each use."""


class Prediction(Record):
    """What a technique is expected to do; ln ratios, given that it has an effect."""

    gain: float
    """Expected ln(speed after / speed before)."""
    sd: float
    """Standard deviation of `gain`: how well it is known."""
    interval: tuple[float, float]
    """Where the next gain lies with 95 %."""
    works: float
    """Chance that a try passes the checks and has an effect that noise does not explain, 0 to 1."""
    tries: int
    """Tries in this state on this architecture."""
    sources: tuple[str, ...]
    """What it rests on, nearest first; empty where nothing is known."""


@dataclass(frozen=True)
class Known:
    """What is believed of techniques in a situation, and what that rests on."""

    belief: Belief
    tries: int
    """In this state on this architecture."""
    sources: tuple[str, ...]


def predict(base: KnowledgeBase, situation: Situation, techniques: Techniques) -> Prediction:
    """Return what `techniques` are expected to do; several are a composite, in order."""
    return prediction_of(Reader(base, situation).known(techniques))


def prediction_of(known: Known) -> Prediction:
    """Return the numbers of `known` that are shown and kept."""
    return Prediction(
        gain=known.belief.mean,
        sd=known.belief.sd,
        interval=known.belief.interval,
        works=known.belief.works,
        tries=known.tries,
        sources=known.sources,
    )


class Reader:
    """Looks techniques up for one situation; what they share is found once."""

    def __init__(self, base: KnowledgeBase, situation: Situation) -> None:
        """Read `base` for `situation`."""
        self._base = base
        self._situation = situation
        self._kin = kin_of(base, situation.state)

    def known(self, techniques: Techniques) -> Known:
        """Return what is known of `techniques`."""
        belief, expected_by = self._expected(techniques)
        tries = 0
        sources: list[str] = []
        for support in supports(self._base, self._kin, self._situation.arch_key, techniques):
            belief = belief.after(support.evidence, support.share, support.factor)
            tries += support.evidence.tries if support.is_own else 0
            sources.append(support.source)
        previous = self._situation.previous
        if previous is not None and (extra := self.extra(previous, techniques[0])):
            belief = belief.shifted(extra)
            expected_by = (*expected_by, f"after {previous}")
        return Known(belief, tries, (*sources, *expected_by))

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
            found = pooled(origins[name] for name in sorted(origins))
            spread = arch_spread(self._situation.arch_key, key)
            counted = found.weight / (1 + found.weight * spread)
            total += counted * found.mean
            weight += counted
        return total / weight

    def _expected(self, techniques: Techniques) -> tuple[Belief, tuple[str, ...]]:
        """Return the belief before evidence of `techniques` themselves, and where it is from."""
        if len(techniques) > 1:
            beliefs = [self.known((one,)).belief for one in techniques]
            gain = COMPOSITE_FACTOR * sum(belief.mean for belief in beliefs)
            return Belief().expecting(gain, COMPOSITE_WEIGHT), ("the gains of its parts",)
        for kin in self._kin:
            entry = self._base.entries.get((kin.states[0], techniques)) if kin.is_line else None
            if entry and entry.prior:
                prior = entry.prior
                return Belief().expecting(kin.factor * prior.gain, prior.weight), ("prior",)
        return Belief(), ()
