"""One version of the knowledge base, and its JSON form, which is exact to the last bit.

Frozen: it is projected from the ledger (`projection.py`), never changed. The file for people is
YAML with rounded numbers: `yaml_writer.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field

from kopt.kernels.families import FAMILIES
from kopt.kernels.record import Record

from .records import Count, EntryKey, KnowledgeEntry, Origin, Pair, PairKey, State, Technique

Held = KnowledgeEntry | Pair
"""What holds priors and evidence."""
Item = State | Technique | Held
SECTIONS = ("states", "techniques", "entries", "pairs")
"""The mappings of a base."""


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

    @property
    def held(self) -> tuple[Held, ...]:
        """All entries, then all pairs."""
        return (*self.entries.values(), *self.pairs.values())

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

    def with_items(self, items: Iterable[Item]) -> "KnowledgeBase":
        """Return this base with `items` in place of those that it has, in the stable order."""
        sections: dict[str, dict[Any, Item]] = {name: {} for name in SECTIONS}
        for item in items:
            match item:
                case State():
                    sections["states"][item.id] = item
                case Technique():
                    sections["techniques"][item.id] = item
                case KnowledgeEntry():
                    sections["entries"][item.key] = item
                case Pair():
                    sections["pairs"][item.key] = item
        ordered: dict[str, Any] = {name: dict(sorted(sections[name].items())) for name in SECTIONS}
        return replace(self, **ordered)


def united(
    one: KnowledgeBase, other: KnowledgeBase, joined: Callable[[Any, Any], Item]
) -> KnowledgeBase:
    """Return `one` with the items of `other`, too; `joined` decides on those that both have."""
    found: dict[str, Any] = {}
    for section in SECTIONS:
        mine: Mapping[Any, Item] = getattr(one, section)
        theirs: Mapping[Any, Item] = getattr(other, section)
        both = {**mine, **theirs, **{k: joined(mine[k], theirs[k]) for k in mine if k in theirs}}
        found[section] = {key: both[key] for key in sorted(both)}
    return replace(one, **found)


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
    fields: dict[str, Any] = {name: tuple(getattr(base, name).values()) for name in SECTIONS}
    fields |= {"version": base.version, "origin": base.origin, "origins": dict(base.origins)}
    document = _BaseDocument(schema="kopt.knowledge_base/1", **fields)
    return document.model_dump_json(by_alias=True, exclude_defaults=True)


def parse_base(text: str | bytes) -> KnowledgeBase:
    """Return the base that `dump_base` wrote.

    Raises:
        ValidationError: It is something else, or damaged.
    """
    told = _BaseDocument.model_validate_json(text)
    head = KnowledgeBase(told.version, told.origin, told.origins)
    return head.with_items((*told.states, *told.techniques, *told.entries, *told.pairs))
