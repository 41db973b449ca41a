"""From what was learned to a base: a pure fold, so that every earlier version can be had again.

The seed and the imported bases are joined first, then come the own samples and edits in their
order: what a user decides here holds against what was imported.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .base import Item, KnowledgeBase, united
from .edits import AddState, AddTechnique, Edit, edited
from .evidence import absorb, absorb_pair
from .merge import join, without_origin
from .records import (
    ByArchitecture,
    Evidence,
    KnowledgeEntry,
    Pair,
    Sample,
    State,
    Technique,
    arch_key,
)

_Item = TypeVar("_Item", KnowledgeEntry, Pair)

LedgerChange = tuple[int, Sample | Edit]
"""A sample or an edit, with the version that it came with."""


@dataclass(frozen=True)
class LedgerContent:
    """Everything that counts in a ledger at a version: revoked items are left out."""

    origin: str
    version: int
    changes: Sequence[LedgerChange] = ()
    """Oldest first."""
    imports: Sequence[KnowledgeBase] = ()
    """Bases of other origins."""


def project(seed: KnowledgeBase, ledger: LedgerContent) -> KnowledgeBase:
    """Return the base that `ledger` makes of `seed`; the same for the same ledger, always."""
    joined = seed
    for imported in ledger.imports:
        joined = join(joined, without_origin(imported, ledger.origin))
    # What ships with kopt is not for an import to redefine.
    base = replace(united(joined, seed, _as_shipped), origin=ledger.origin)
    return extend(base, ledger.changes, ledger.version)


def extend(base: KnowledgeBase, changes: Iterable[LedgerChange], version: int) -> KnowledgeBase:
    """Return `base` after more samples and edits, at `version`.

    `extend(extend(base, a, 5), b, 9)` is `extend(base, a + b, 9)`.
    """
    draft = _Draft(base)
    for at, change in changes:
        if isinstance(change, Sample):
            draft.learn(change, at)
        else:
            draft.edit(change, at)
    return draft.finished(version)


def _as_shipped(joined: Item, shipped: Item) -> Item:
    """Return a state or a technique as it ships, an entry or a pair with the prior that ships."""
    if isinstance(joined, State | Technique) or isinstance(shipped, State | Technique):
        return shipped
    return joined.model_copy(update={"prior": shipped.prior})


class _Draft:
    """A base while it is folded."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._states = dict(base.states)
        self._techniques = dict(base.techniques)
        self._entries = dict(base.entries)
        self._pairs = dict(base.pairs)

    def learn(self, sample: Sample, version: int) -> None:
        self._know(sample)
        key = (sample.state, sample.techniques)
        entry = self._entries.get(key) or KnowledgeEntry(
            state=sample.state, techniques=sample.techniques
        )
        alone = self._own(entry.evidence, sample)
        self._entries[key] = self._told(entry, sample, (absorb(alone, sample), version))
        if sample.previous is not None and len(sample.techniques) == 1:
            pair_key = (sample.previous, sample.techniques[0])
            pair = self._pairs.get(pair_key) or Pair(before=pair_key[0], after=pair_key[1])
            more = absorb_pair(self._own(pair.evidence, sample), sample, alone)
            self._pairs[pair_key] = self._told(pair, sample, (more, version))

    def edit(self, edit: Edit, version: int) -> None:
        if isinstance(edit, AddState):
            self._states.setdefault(edit.state.id, edit.state)
        elif isinstance(edit, AddTechnique):
            self._techniques.setdefault(edit.technique.id, edit.technique)
        else:
            key = (edit.state, edit.techniques)
            self._entries[key] = edited(self._entries.get(key), edit, version)

    def finished(self, version: int) -> KnowledgeBase:
        origins = {**self._base.origins, self._base.origin: version}
        drafted = (self._states, self._techniques, self._entries, self._pairs)
        items = (item for section in drafted for item in section.values())
        return replace(
            self._base.with_items(items), version=version, origins=dict(sorted(origins.items()))
        )

    def _own(self, evidence: ByArchitecture, sample: Sample) -> Evidence:
        """Return what this origin knows by now, on the architecture of `sample`."""
        key = arch_key(sample.arch, sample.provenance)
        return evidence.get(key, {}).get(self._base.origin, Evidence())

    def _told(self, item: _Item, sample: Sample, changed: tuple[Evidence, int]) -> _Item:
        """Return `item` with this origin's evidence changed at a version."""
        arch, (evidence, version) = arch_key(sample.arch, sample.provenance), changed
        dated = evidence.model_copy(update={"version": version})
        origins = {**item.evidence.get(arch, {}), self._base.origin: dated}
        known = {**item.evidence, arch: dict(sorted(origins.items()))}
        return item.model_copy(update={"evidence": dict(sorted(known.items()))})

    def _know(self, sample: Sample) -> None:
        """Add the state and the techniques of `sample` that are not known yet."""
        if sample.state not in self._states:
            self._states[sample.state] = _discovered_state(sample)
        for name in (*sample.techniques, *filter(None, [sample.previous])):
            if name not in self._techniques:
                self._techniques[name] = _discovered_technique(name, sample)


def _discovered_state(sample: Sample) -> State:
    seen = sample.signature_before
    return State(
        id=sample.state,
        bottleneck="unknown" if seen is None else seen.bottleneck,
        suspects=() if seen is None else seen.suspects,
        traits=() if seen is None else seen.traits,
        source=f"met in {sample.id}",
        is_discovered=True,
    )


def _discovered_technique(name: str, sample: Sample) -> Technique:
    return Technique(
        id=name,
        family="other",
        category="general",
        description="",
        source=f"first tried in {sample.id}",
        is_discovered=True,
    )
