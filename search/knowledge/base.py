"""One version of the knowledge base, to look things up in. Frozen: it is projected, never changed.

`projection.py` makes it from the seed, the samples, the edits and what was imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kopt.kernels.families import FAMILIES
from kopt.search.knowledge.records import Entry, Pair, State, Technique

EntryKey = tuple[str, tuple[str, ...]]
"""State and techniques."""
PairKey = tuple[str, str]
"""Technique before and technique after."""


def entry_key(entry: Entry) -> EntryKey:
    """Return the key of `entry` in a base."""
    return entry.state, entry.techniques


def pair_key(pair: Pair) -> PairKey:
    """Return the key of `pair` in a base."""
    return pair.before, pair.after


@dataclass(frozen=True)
class KnowledgeBase:
    """What is known at one version; every mapping is in the stable order of the file."""

    version: int = 0
    """Counts the changes of this base; 0 is the seed alone."""
    origin: str = "seed"
    """Id of the KOPT_HOME whose base it is, random, made once."""
    origins: Mapping[str, int] = field(default_factory=dict[str, int])
    """Version of every origin that evidence comes from."""
    states: Mapping[str, State] = field(default_factory=dict[str, State])
    techniques: Mapping[str, Technique] = field(default_factory=dict[str, Technique])
    entries: Mapping[EntryKey, Entry] = field(default_factory=dict[EntryKey, Entry])
    pairs: Mapping[PairKey, Pair] = field(default_factory=dict[PairKey, Pair])

    def entries_of(self, state: str) -> tuple[Entry, ...]:
        """Return the entries of `state` itself, without those it inherits, deprecated ones too."""
        return tuple(entry for entry in self.entries.values() if entry.state == state)

    def ancestry(self, state: str) -> tuple[State, ...]:
        """Return the known state `state` and, nearest first, the states it inherits from."""
        found: dict[str, State] = {}
        at: str | None = state
        while at is not None and at in self.states and at not in found:
            found[at] = self.states[at]
            at = found[at].inherits
        return tuple(found.values())

    def undefined(self) -> set[str]:
        """Return the states, techniques and families that it names and that are nowhere defined."""
        states = {state for state, _ in self.entries}
        states |= {state.inherits for state in self.states.values() if state.inherits}
        techniques = {name for _, names in self.entries for name in names}
        techniques |= {name for key in self.pairs for name in key}
        techniques |= {name for one in self.techniques.values() for name in one.prepares}
        families = {one.family for one in self.techniques.values()}
        unknown = (states - self.states.keys()) | (techniques - self.techniques.keys())
        return unknown | (families - set(FAMILIES))
