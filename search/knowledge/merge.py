"""Two bases as one: what both know, each origin's evidence taken from where it is newer.

A join in the sense of algebra: idempotent, commutative and associative, so that bases may be
exchanged in any order, any number of times. Every choice is therefore a maximum or a union.
"""

from dataclasses import replace
from typing import Any, TypeVar

from .base import Item, KnowledgeBase, united
from .edits import latest_notes
from .records import ByArchitecture, KnowledgeEntry, Pair, Prior, State, Technique

MERGED = "merged"
"""Origin of a base that was joined from bases of several origins."""

_Held = TypeVar("_Held", KnowledgeEntry, Pair)


def join(one: KnowledgeBase, other: KnowledgeBase) -> KnowledgeBase:
    """Return what `one` and `other` know together.

    An origin's evidence is taken as a whole from the base that has it at the higher version. Of
    two priors the more modest one holds, of two descriptions a shipped one; a deprecation holds.
    """
    one, other = _newer_evidence(one, other)
    origins = {**one.origins, **other.origins}
    for name in one.origins.keys() & other.origins.keys():
        origins[name] = max(one.origins[name], other.origins[name])
    return replace(
        united(one, other, _joined),
        version=max(one.version, other.version),
        origin=one.origin if one.origin == other.origin else MERGED,
        origins=dict(sorted(origins.items())),
    )


def without_origin(base: KnowledgeBase, origin: str) -> KnowledgeBase:
    """Return `base` without the evidence of `origin`, and without what it alone speaks for."""
    kept: list[Item] = [*base.states.values(), *base.techniques.values()]
    for item, left in zip(base.held, _stripped(base, origin).held, strict=True):
        if left is item or left.evidence or left.prior or left.notes:
            kept.append(left)
    origins = {name: version for name, version in base.origins.items() if name != origin}
    return replace(base.with_items(kept), origins=origins)


def with_seed(base: KnowledgeBase, seed: KnowledgeBase) -> KnowledgeBase:
    """Return `base` with what ships wherever it says nothing itself."""

    def first(one: Item, shipped: Any) -> Item:
        if isinstance(one, State | Technique) or one.prior:
            return one
        return one.model_copy(update={"prior": shipped.prior})

    return united(base, seed, first)


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
    return sorted(
        f"{item.key} {arch} {origins[origin].model_dump_json()}"
        for item in base.held
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


def _joined(one: Item, other: Any) -> Item:
    """Return the better described state or technique; of entries and pairs what both say."""
    if isinstance(one, State | Technique):
        both_described: tuple[State | Technique, ...] = (one, other)
        return min(both_described, key=lambda item: (item.is_discovered, item.model_dump_json()))
    both: dict[str, object] = {
        "prior": _modest(one.prior, other.prior),
        "evidence": _joined_evidence(one.evidence, other.evidence),
    }
    if isinstance(one, KnowledgeEntry):
        both["notes"] = latest_notes((*one.notes, *other.notes))
        both["is_deprecated"] = one.is_deprecated or other.is_deprecated
    return one.model_copy(update=both)


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
