"""Which evidence speaks for a technique in a situation, how much of it counts, and trust in priors.

Evidence of the same state and architecture counts in full. Other evidence differs by more than
chance: by the variance between architectures or states. However much of it there is, it says no
more than that variance allows: `n` tries count as `n / (1 + n x spread)`, and never as more than
`1 / spread`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import counted, pooled
from kopt.search.knowledge.records import ESTIMATED, Evidence, Techniques

TRUSTED_TRIES = 4.0
"""Kept promises that priors are trusted with in advance."""


def trust_in_priors(base: KnowledgeBase) -> float:
    """Return what a prior's weight is multiplied by, 0 to 1.

    A prior promises a gain or a loss. The share of tries that passed the checks and kept the
    promise, over all entries and architectures: priors have common sources, so that those that
    were tried speak for those that were not. One that broke its promise is also outweighed by its
    own evidence; this is for the others.
    """
    kept = passed = 0
    for entry in base.entries.values():
        if entry.prior is None or not entry.evidence:
            continue
        gains = entry.prior.gain > 0
        for origins in entry.evidence.values():
            found = counted(origins, base.origin)
            kept += found.gained if gains else found.lost
            passed += found.tries - found.failed
    return (TRUSTED_TRIES + kept) / (TRUSTED_TRIES + passed)


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


@dataclass(frozen=True)
class Kin:
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


@dataclass(frozen=True)
class Support:
    """A body of evidence with what it counts here."""

    evidence: Evidence
    share: float
    """Share of a try that each of its tries counts, 0 to 1."""
    factor: float
    source: str
    """e.g. `sm_90a: 5 tries`."""
    is_own: bool
    """Whether it is of the same state and architecture."""
    tries: int
    """Number of tries, counted or not."""


def kin_of(base: KnowledgeBase, state: str) -> tuple[Kin, ...]:
    """Return the state, what it inherits from and the states of its bottleneck, in this order."""
    found = [Kin((state,), 0.0, 1.0, "")]
    line = [one.id for one in base.ancestry(state) if one.id != state]
    for step, other in enumerate(line, start=1):
        found.append(Kin((other,), step * INHERITED, INHERITED_GAIN**step, f"inherits {other}"))
    known = base.states.get(state)
    if known is not None and known.bottleneck != "unknown":
        others = tuple(
            other.id
            for other in base.states.values()
            if other.bottleneck == known.bottleneck and other.id not in (state, *line)
        )
        label = f"other {known.bottleneck} states"
        found.append(Kin(others, SAME_BOTTLENECK, SAME_BOTTLENECK_GAIN, label, False))
    return tuple(found)


def supports(
    base: KnowledgeBase, kin: tuple[Kin, ...], arch: str, techniques: Techniques
) -> Iterator[Support]:
    """Yield what speaks for `techniques`: per group of states and distance of architecture."""
    for group in kin:
        bodies: dict[float, list[tuple[str, Mapping[str, Evidence]]]] = {}
        for state in group.states:
            entry = base.entries.get((state, techniques))
            for key, origins in entry.evidence.items() if entry else ():
                bodies.setdefault(arch_spread(arch, key), []).append((key, origins))
        for between, several in sorted(bodies.items(), key=lambda item: item[0]):
            evidence = pooled(counted(origins, base.origin) for _, origins in several)
            tries = sum(one.tries for _, origins in several for one in origins.values())
            spread = group.spread + between
            where = ", ".join(dict.fromkeys(key for key, _ in several))
            group_words = f" ({group.label})" if group.label else ""
            yield Support(
                evidence,
                1 / (1 + evidence.tries * spread),
                group.factor,
                f"{where}{group_words}: {tries} {'try' if tries == 1 else 'tries'}",
                spread == 0,
                tries,
            )


def arch_spread(arch: str, other: str) -> float:
    """Return the variance between two architecture keys, in that of single gains; 0: the same."""
    spread = OTHER_ARCH * (arch.removesuffix(ESTIMATED) != other.removesuffix(ESTIMATED))
    return spread + OTHER_PROVENANCE * (arch.endswith(ESTIMATED) != other.endswith(ESTIMATED))
