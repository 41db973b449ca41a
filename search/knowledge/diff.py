"""Differences of two versions of a base, or of two bases."""

from collections.abc import Iterator, Mapping
from math import exp
from typing import Any, Literal

from kopt.kernels.record import Record

from .base import SECTIONS, Held, KnowledgeBase
from .evidence import pooled
from .records import ByArchitecture, Evidence, State, Technique

Subject = Literal["state", "technique", "entry", "pair"]
Change = Literal["added", "removed", "changed"]
_SUBJECTS: tuple[Subject, ...] = ("state", "technique", "entry", "pair")


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
    change: Change
    evidence: tuple[EvidenceChange, ...] = ()
    told: tuple[str, ...] = ()
    """Other differences, a sentence each."""


def compare(before: KnowledgeBase, after: KnowledgeBase) -> tuple[Difference, ...]:
    """Return what `after` says that `before` does not say or says differently, in stable order."""
    found: list[Difference] = []
    for subject, section in zip(_SUBJECTS, SECTIONS, strict=True):
        old: Mapping[Any, Any] = getattr(before, section)
        new: Mapping[Any, Any] = getattr(after, section)
        found += [
            _difference(subject, old.get(key), new.get(key))
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key)
        ]
    return tuple(found)


def _difference(subject: Subject, old: Any, new: Any) -> Difference:
    item = old or new
    change: Change = "added" if old is None else "removed" if new is None else "changed"
    if isinstance(item, State | Technique):
        told = () if old is None or new is None else tuple(_described(old, new))
        return Difference(subject=subject, name=item.id, change=change, told=told)
    return Difference(
        subject=subject,
        name=item.name,
        change=change,
        evidence=tuple(_evidence(old, new)),
        told=tuple(_told(old, new)),
    )


def _described(before: Record, after: Record) -> Iterator[str]:
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    yield from (f"{name}: {old[name]} -> {new[name]}" for name in old if old[name] != new[name])


def _evidence(before: Held | None, after: Held | None) -> Iterator[EvidenceChange]:
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


def _told(before: Held | None, after: Held | None) -> Iterator[str]:
    old = None if before is None else before.prior
    new = None if after is None else after.prior
    if new is not None and new != old:
        was = "" if old is None else f", was {exp(old.gain):.2f}x"
        yield f"prior {exp(new.gain):.2f}x as {new.weight:g} tries{was}: {new.source}"
    if old is not None and new is None:
        yield f"no prior any more, was {exp(old.gain):.2f}x"
    known = () if before is None else before.notes
    notes = () if after is None else after.notes
    yield from (f"note: {note.text}" for note in notes if note not in known)
    was_deprecated = before is not None and before.is_deprecated
    is_deprecated = after is not None and after.is_deprecated
    if was_deprecated != is_deprecated:
        yield "deprecated: not drawn any more" if is_deprecated else "drawn again"
