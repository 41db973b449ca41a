"""One version of the knowledge base, and its JSON form, which is exact to the last bit.

Frozen: it is projected from the ledger (`projection.py`), never changed. The file for people is
YAML with rounded numbers: `yaml_writer.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from kopt.kernels.families import FAMILIES
from kopt.kernels.record import Record

from .records import Count, KnowledgeEntry, Origin, Pair, State, Technique

EntryKey = tuple[str, tuple[str, ...]]
"""State and techniques."""
PairKey = tuple[str, str]
"""Technique before and technique after."""


def entry_key(entry: KnowledgeEntry) -> EntryKey:
    """Return the key of `entry` in a base."""
    return entry.state, entry.techniques


def pair_key(pair: Pair) -> PairKey:
    """Return the key of `pair` in a base."""
    return pair.before, pair.after


@dataclass(frozen=True)
class KnowledgeBase:
    """The base at one version; every mapping is in the stable order of the file."""

    version: int = 0
    """Counts the changes of this base; 0 is the seed alone."""
    origin: str = "seed"
    """Id of the KOPT_HOME whose base it is, random, made once."""
    origins: Mapping[str, int] = field(default_factory=dict[str, int])
    """Version of every origin that evidence comes from."""
    states: Mapping[str, State] = field(default_factory=dict[str, State])
    techniques: Mapping[str, Technique] = field(default_factory=dict[str, Technique])
    entries: Mapping[EntryKey, KnowledgeEntry] = field(
        default_factory=dict[EntryKey, KnowledgeEntry]
    )
    pairs: Mapping[PairKey, Pair] = field(default_factory=dict[PairKey, Pair])

    def entries_of(self, state: str) -> tuple[KnowledgeEntry, ...]:
        """Return the entries of `state` itself, without those it inherits, deprecated ones too."""
        return tuple(entry for entry in self.entries.values() if entry.state == state)

    @property
    def tries(self) -> int:
        """How many tries the entries stand on, of all origins."""
        return sum(
            evidence.tries
            for entry in self.entries.values()
            for origins in entry.evidence.values()
            for evidence in origins.values()
        )

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


class _BaseDocument(Record):
    """A base without keys that repeat what its items say."""

    schema_: Literal["kopt.knowledge_base/1"] = Field(alias="schema")
    version: Count
    origin: Origin
    origins: dict[Origin, Count]
    states: tuple[State, ...]
    techniques: tuple[Technique, ...]
    entries: tuple[KnowledgeEntry, ...]
    pairs: tuple[Pair, ...]


def dump_base(base: KnowledgeBase) -> str:
    """Return `base` as one JSON document, kopt.knowledge_base/1."""
    return _BaseDocument(
        schema="kopt.knowledge_base/1",
        version=base.version,
        origin=base.origin,
        origins=dict(base.origins),
        states=tuple(base.states.values()),
        techniques=tuple(base.techniques.values()),
        entries=tuple(base.entries.values()),
        pairs=tuple(base.pairs.values()),
    ).model_dump_json(by_alias=True, exclude_defaults=True)


def parse_base(text: str | bytes) -> KnowledgeBase:
    """Return the base that `dump_base` wrote.

    Raises:
        ValidationError: It is something else, or damaged.
    """
    document = _BaseDocument.model_validate_json(text)
    return KnowledgeBase(
        version=document.version,
        origin=document.origin,
        origins=document.origins,
        states={state.id: state for state in document.states},
        techniques={technique.id: technique for technique in document.techniques},
        entries={entry_key(entry): entry for entry in document.entries},
        pairs={pair_key(pair): pair for pair in document.pairs},
    )
