"""Differences of two versions of a base, or of two bases."""

from collections.abc import Iterator, Mapping
from math import exp
from typing import Literal

from kopt.kernels.record import Record

from .base import KnowledgeBase
from .edits import named
from .evidence import pooled
from .records import ByArchitecture, Evidence, KnowledgeEntry, Pair, State, Technique

Subject = Literal["state", "technique", "entry", "pair"]


class EvidenceChange(Record):
    """How the evidence of an item on one architecture has changed, all origins pooled."""

    arch_key: str
    before: Evidence
    after: Evidence
    origins_before: tuple[str, ...]
    origins_after: tuple[str, ...]


class Difference(Record):
    """One item that is new, gone or other."""

    subject: Subject
    name: str
    change: Literal["added", "removed", "changed"]
    evidence: tuple[EvidenceChange, ...] = ()
    told: tuple[str, ...] = ()
    """Other differences, a sentence each."""


def compare(before: KnowledgeBase, after: KnowledgeBase) -> tuple[Difference, ...]:
    """Return what `after` says that `before` does not say or says differently, in stable order."""
    states = _described("state", before.states, after.states)
    techniques = _described("technique", before.techniques, after.techniques)
    found = [*states, *techniques]
    for key in sorted(before.entries.keys() | after.entries.keys()):
        found += _held("entry", named(key), before.entries.get(key), after.entries.get(key))
    for pair in sorted(before.pairs.keys() | after.pairs.keys()):
        found += _held("pair", " before ".join(pair), before.pairs.get(pair), after.pairs.get(pair))
    return tuple(found)


def _described(
    subject: Subject,
    before: Mapping[str, State] | Mapping[str, Technique],
    after: Mapping[str, State] | Mapping[str, Technique],
) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one is None:
            yield Difference(subject=subject, name=name, change="added")
        elif other is None:
            yield Difference(subject=subject, name=name, change="removed")
        elif one != other:
            old, new = one.model_dump(mode="json"), other.model_dump(mode="json")
            told = tuple(f"{k}: {old[k]} -> {new[k]}" for k in old if old[k] != new[k])
            yield Difference(subject=subject, name=name, change="changed", told=told)


def _held(
    subject: Subject,
    name: str,
    before: KnowledgeEntry | Pair | None,
    after: KnowledgeEntry | Pair | None,
) -> Iterator[Difference]:
    if before == after:
        return
    change: Literal["added", "removed", "changed"] = "changed"
    if before is None or after is None:
        change = "added" if before is None else "removed"
    yield Difference(
        subject=subject,
        name=name,
        change=change,
        evidence=tuple(_evidence(before, after)),
        told=tuple(_told(before, after)),
    )


def _evidence(
    before: KnowledgeEntry | Pair | None, after: KnowledgeEntry | Pair | None
) -> Iterator[EvidenceChange]:
    old: ByArchitecture = {} if before is None else before.evidence
    new: ByArchitecture = {} if after is None else after.evidence
    for arch in sorted(old.keys() | new.keys()):
        one, other = old.get(arch, {}), new.get(arch, {})
        if one != other:
            yield EvidenceChange(
                arch_key=arch,
                before=pooled(one.values()),
                after=pooled(other.values()),
                origins_before=tuple(one),
                origins_after=tuple(other),
            )


def _told(
    before: KnowledgeEntry | Pair | None, after: KnowledgeEntry | Pair | None
) -> Iterator[str]:
    old = None if before is None else before.prior
    new = None if after is None else after.prior
    if new is not None and new != old:
        was = "" if old is None else f", was {exp(old.gain):.2f}x"
        yield f"prior {exp(new.gain):.2f}x as {new.weight:g} tries{was}: {new.source}"
    if old is not None and new is None:
        yield f"no prior any more, was {exp(old.gain):.2f}x"
    notes = before.notes if isinstance(before, KnowledgeEntry) else ()
    yield from (
        f"note: {note.text}"
        for note in (after.notes if isinstance(after, KnowledgeEntry) else ())
        if note not in notes
    )
    was_drawn = not (isinstance(before, KnowledgeEntry) and before.is_deprecated)
    is_drawn = not (isinstance(after, KnowledgeEntry) and after.is_deprecated)
    if was_drawn != is_drawn:
        yield "drawn again" if is_drawn else "deprecated: not drawn any more"
