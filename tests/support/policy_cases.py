"""Small bases with round numbers, for tests of what is predicted and drawn."""

from collections.abc import Sequence

from kopt.kernels.profile_result import BottleneckName
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.records import Evidence, KnowledgeEntry, Pair, Prior, State, Technique

HERE, PARENT, NEIGHBOR, STRANGER = "here", "parent", "neighbor", "stranger"
"""A state, what it inherits from, one of its bottleneck, one of another."""
H100, B200, ON_SIM = "sm_90a", "sm_100a", "sm_90a estimated"


def state(name: str, bottleneck: BottleneckName, inherits: str | None = None) -> State:
    """Return a state."""
    return State(id=name, bottleneck=bottleneck, inherits=inherits)


def technique(name: str) -> Technique:
    """Return a technique."""
    return Technique(id=name, family="other", category="general", description="", source="made up")


def prior(gain: float, weight: float) -> Prior:
    """Return a prior."""
    return Prior(gain=gain, weight=weight, source="made up")


def gained(tries: int, mean: float = 0.2) -> Evidence:
    """Return evidence of exact gains that are all alike."""
    return Evidence(tries=tries, gained=tries, weight=float(tries), mean=mean)


def within_noise(tries: int) -> Evidence:
    """Return evidence of tries without effect."""
    return Evidence(tries=tries, within_noise=tries)


def failed(tries: int) -> Evidence:
    """Return evidence of failures."""
    return Evidence(tries=tries, failed=tries)


def entry(
    of: str = HERE,
    names: tuple[str, ...] = ("tiling",),
    expected: Prior | None = None,
    found: dict[str, Evidence] | None = None,
) -> KnowledgeEntry:
    """Return an entry with evidence of one origin by architecture key."""
    evidence = {key: {"k1": one} for key, one in (found or {}).items()}
    return KnowledgeEntry(state=of, techniques=names, prior=expected, evidence=evidence)


def pair(
    before: str, after: str, expected: Prior | None = None, found: dict[str, Evidence] | None = None
) -> Pair:
    """Return a pair with evidence of one origin by architecture key."""
    evidence = {key: {"k1": one} for key, one in (found or {}).items()}
    return Pair(before=before, after=after, prior=expected, evidence=evidence)


def base_of(*entries: KnowledgeEntry, pairs: Sequence[Pair] = ()) -> KnowledgeBase:
    """Return a base with the four states and the techniques of `entries` and `pairs`."""
    states = (
        state(HERE, "memory_bound", PARENT),
        state(PARENT, "memory_bound"),
        state(NEIGHBOR, "memory_bound"),
        state(STRANGER, "compute_bound"),
    )
    names = {name for one in entries for name in one.techniques}
    names |= {name for one in pairs for name in (one.before, one.after)}
    return KnowledgeBase(
        origin="k1",
        states={one.id: one for one in states},
        techniques={name: technique(name) for name in sorted(names)},
        entries={(one.state, one.techniques): one for one in entries},
        pairs={(one.before, one.after): one for one in pairs},
    )
