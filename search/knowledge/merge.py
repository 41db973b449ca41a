"""Two bases as one: what both know, each origin's evidence taken from where it is newer.

A join in the sense of algebra: idempotent, commutative and associative, so that bases may be
exchanged in any order, any number of times. Every choice is therefore a maximum or a union.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from .base import EntryKey, KnowledgeBase, PairKey
from .edits import latest_notes
from .records import ByArchitecture, KnowledgeEntry, Pair, Prior, State, Technique

MERGED = "merged"
"""Origin of a base that was joined from bases of several origins."""

_Key = TypeVar("_Key", str, EntryKey, PairKey)
_Item = TypeVar("_Item")
_Held = TypeVar("_Held", KnowledgeEntry, Pair)
_Described = TypeVar("_Described", State, Technique)


def join(one: KnowledgeBase, other: KnowledgeBase) -> KnowledgeBase:
    """Return what `one` and `other` know together.

    An origin's evidence is taken as a whole from the base that has it at the higher version. Of
    two priors the more modest one holds, of two descriptions a shipped one; a deprecation holds.
    """
    one, other = _newer_evidence(one, other)
    origins = {**one.origins, **other.origins}
    for name in one.origins.keys() & other.origins.keys():
        origins[name] = max(one.origins[name], other.origins[name])
    return KnowledgeBase(
        version=max(one.version, other.version),
        origin=one.origin if one.origin == other.origin else MERGED,
        origins=dict(sorted(origins.items())),
        states=_united(one.states, other.states, _better_described),
        techniques=_united(one.techniques, other.techniques, _better_described),
        entries=_united(one.entries, other.entries, _joined_entry),
        pairs=_united(one.pairs, other.pairs, _joined_pair),
    )


def without_origin(base: KnowledgeBase, origin: str) -> KnowledgeBase:
    """Return `base` without the evidence of `origin`, and without what it alone speaks for."""
    stripped = _stripped(base, origin)
    return replace(
        stripped,
        origins={name: version for name, version in base.origins.items() if name != origin},
        entries={
            key: entry
            for key, entry in stripped.entries.items()
            if entry == base.entries[key] or entry.evidence or entry.prior or entry.notes
        },
        pairs={
            key: pair
            for key, pair in stripped.pairs.items()
            if pair == base.pairs[key] or pair.evidence or pair.prior
        },
    )


def with_seed(base: KnowledgeBase, seed: KnowledgeBase) -> KnowledgeBase:
    """Return `base` with what ships wherever it says nothing itself."""
    return replace(
        base,
        states=_united(base.states, seed.states, _first),
        techniques=_united(base.techniques, seed.techniques, _first),
        entries=_united(base.entries, seed.entries, _with_prior),
        pairs=_united(base.pairs, seed.pairs, _with_prior),
    )


def _first(one: _Item, _: _Item) -> _Item:
    return one


def _with_prior(one: _Held, other: _Held) -> _Held:
    return one if one.prior else one.model_copy(update={"prior": other.prior})


def _newer_evidence(
    one: KnowledgeBase, other: KnowledgeBase
) -> tuple[KnowledgeBase, KnowledgeBase]:
    """Return both with the evidence of every shared origin left in only one of them."""
    for origin in sorted(one.origins.keys() & other.origins.keys()):
        # Equal versions with different evidence: copies of one KOPT_HOME that went apart.
        first = (one.origins[origin], _evidence_of(one, origin))
        second = (other.origins[origin], _evidence_of(other, origin))
        if first >= second:
            other = _stripped(other, origin)
        else:
            one = _stripped(one, origin)
    return one, other


def _evidence_of(base: KnowledgeBase, origin: str) -> list[str]:
    """Return the whole evidence of `origin` in one form that compares."""
    held: list[tuple[object, KnowledgeEntry | Pair]] = [*base.entries.items(), *base.pairs.items()]
    return sorted(
        f"{key} {arch} {origins[origin].model_dump_json()}"
        for key, item in held
        for arch, origins in item.evidence.items()
        if origin in origins
    )


def _stripped(base: KnowledgeBase, origin: str) -> KnowledgeBase:
    return replace(
        base,
        entries={key: _without(entry, origin) for key, entry in base.entries.items()},
        pairs={key: _without(pair, origin) for key, pair in base.pairs.items()},
    )


def _without(item: _Held, origin: str) -> _Held:
    if not any(origin in origins for origins in item.evidence.values()):
        return item
    left = {
        arch: {name: evidence for name, evidence in origins.items() if name != origin}
        for arch, origins in item.evidence.items()
    }
    return item.model_copy(update={"evidence": {arch: some for arch, some in left.items() if some}})


def _united(
    one: Mapping[_Key, _Item],
    other: Mapping[_Key, _Item],
    joined: Callable[[_Item, _Item], _Item],
) -> dict[_Key, _Item]:
    """Return the union in the stable order, `joined` deciding on what both have."""
    both = {**one, **other}
    for key in one.keys() & other.keys():
        both[key] = joined(one[key], other[key])
    return {key: both[key] for key in sorted(both)}


def _better_described(one: _Described, other: _Described) -> _Described:
    return min(one, other, key=lambda item: (item.is_discovered, item.model_dump_json()))


def _joined_entry(one: KnowledgeEntry, other: KnowledgeEntry) -> KnowledgeEntry:
    return one.model_copy(
        update={
            "prior": _modest(one.prior, other.prior),
            "evidence": _joined_evidence(one.evidence, other.evidence),
            "notes": latest_notes((*one.notes, *other.notes)),
            "is_deprecated": one.is_deprecated or other.is_deprecated,
        }
    )


def _joined_pair(one: Pair, other: Pair) -> Pair:
    return one.model_copy(
        update={
            "prior": _modest(one.prior, other.prior),
            "evidence": _joined_evidence(one.evidence, other.evidence),
        }
    )


def _modest(one: Prior | None, other: Prior | None) -> Prior | None:
    """Return the prior that claims less."""
    priors = [prior for prior in (one, other) if prior is not None]
    return min(priors, key=lambda prior: (abs(prior.gain), prior.model_dump_json()), default=None)


def _joined_evidence(one: ByArchitecture, other: ByArchitecture) -> ByArchitecture:
    """Return the union of evidence that shares no origin."""
    return {
        arch: dict(sorted({**one.get(arch, {}), **other.get(arch, {})}.items()))
        for arch in sorted(one.keys() | other.keys())
    }
