"""Edits of a knowledge base: what a rule, a model or a user may change besides learning.

Numbers are clamped, texts are data, and an edit that names something unknown is refused.
"""

from collections.abc import Container, Iterable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kopt.kernels.families import FAMILIES
from kopt.kernels.record import Record

from .base import KnowledgeBase
from .records import (
    GAIN_LIMIT,
    NAME_LIMIT,
    NOTE_LIMIT,
    PRIOR_WEIGHT_LIMIT,
    WORDS_LIMIT,
    Finite,
    Identifier,
    KnowledgeEntry,
    Name,
    Note,
    Prior,
    State,
    Technique,
    Techniques,
    Words,
)


class _Edit(Record):
    """Fields of every edit."""

    reason: Words
    evidence: tuple[Name, ...] = ()
    """Ids of the samples it rests on; they must exist."""
    author: Literal["rule", "model", "user"]


class AddState(_Edit):
    """A state that was met and that no known one matches."""

    kind: Literal["add_state"] = "add_state"
    state: State


class AddTechnique(_Edit):
    """A technique that no known one covers."""

    kind: Literal["add_technique"] = "add_technique"
    technique: Technique


class _OfEntry(_Edit):
    """An edit of one entry."""

    state: Identifier
    techniques: Techniques


def _clamp(low: float, high: float) -> AfterValidator:
    return AfterValidator(lambda value: max(low, min(high, value)))


Gain = Annotated[Finite, _clamp(-GAIN_LIMIT, GAIN_LIMIT)]
"""ln ratio, clamped."""
Weight = Annotated[Finite, _clamp(0.0, PRIOR_WEIGHT_LIMIT)]
"""Pseudo-tries, clamped."""


class AddEntry(_OfEntry):
    """Techniques worth trying in a state, with what is expected of them."""

    kind: Literal["add_entry"] = "add_entry"
    gain: Gain
    weight: Weight = 1.0


class AdjustPrior(_OfEntry):
    """Another expectation for an entry that exists."""

    kind: Literal["adjust_prior"] = "adjust_prior"
    gain: Gain
    weight: Weight = 1.0


class AddNote(_OfEntry):
    """A remark on an entry that exists."""

    kind: Literal["add_note"] = "add_note"
    text: Words


class Deprecate(_OfEntry):
    """Draw an entry no more; nothing is deleted."""

    kind: Literal["deprecate"] = "deprecate"


class Revive(_OfEntry):
    """Draw a deprecated entry again."""

    kind: Literal["revive"] = "revive"


EntryEdit = AddEntry | AdjustPrior | AddNote | Deprecate | Revive
Edit = Annotated[AddState | AddTechnique | EntryEdit, Field(discriminator="kind")]


def refusal(edit: Edit, base: KnowledgeBase, samples: Container[str]) -> str | None:
    """Return why `edit` does not fit `base`, or None; it may refer to the ids in `samples`."""
    return next(_refusals(edit, base, samples), None)


def _refusals(edit: Edit, base: KnowledgeBase, samples: Container[str]) -> Iterator[str]:
    yield from (f"there is no sample {name}" for name in edit.evidence if name not in samples)
    # What has never been tried can be proposed without evidence, but not judged.
    is_proposal = isinstance(edit, AddTechnique | AddEntry)
    if edit.author == "model" and not edit.evidence and not is_proposal:
        yield "a model's edit must name the samples that it rests on"
    if isinstance(edit, AddState):
        yield from _state_refusals(edit.state, base)
    elif isinstance(edit, AddTechnique):
        yield from _technique_refusals(edit.technique, base)
    else:
        yield from _entry_refusals(edit, base)


def _state_refusals(state: State, base: KnowledgeBase) -> Iterator[str]:
    if state.id in base.states:
        yield f"there is a state {state.id} already"
    if not state.is_discovered:
        yield f"the new state {state.id} must be marked is_discovered"
    if state.inherits is not None and state.inherits not in base.states:
        yield f"{state.id} inherits from {state.inherits}, which there is not"


def _technique_refusals(technique: Technique, base: KnowledgeBase) -> Iterator[str]:
    if technique.id in base.techniques:
        yield f"there is a technique {technique.id} already"
    if len(base.techniques) >= NAME_LIMIT:
        yield f"the base has {len(base.techniques)} techniques, which is enough"
    if not technique.is_discovered:
        yield f"the new technique {technique.id} must be marked is_discovered"
    if technique.family not in FAMILIES:
        yield f"{technique.family!r} is no family"
    unknown = (name for name in technique.prepares if name not in base.techniques)
    yield from (f"{technique.id} prepares {name}, which there is not" for name in unknown)


def _entry_refusals(edit: EntryEdit, base: KnowledgeBase) -> Iterator[str]:
    if edit.state not in base.states:
        yield f"there is no state {edit.state}"
    unknown = (name for name in edit.techniques if name not in base.techniques)
    yield from (f"there is no technique {name}" for name in unknown)
    entry, name = base.entries.get((edit.state, edit.techniques)), " + ".join(edit.techniques)
    if isinstance(edit, AddEntry) and entry is not None and entry.prior is not None:
        yield f"{edit.state}: {name} has a prior already: adjust it"
    if entry is None and not isinstance(edit, AddEntry):
        yield f"{edit.state}: {name} is no entry"


def changes_nothing(edit: Edit, base: KnowledgeBase) -> bool:
    """Return whether `base` says already what `edit` asks for."""
    if isinstance(edit, AddState):
        return edit.state.id in base.states
    if isinstance(edit, AddTechnique):
        return edit.technique.id in base.techniques
    entry = base.entries.get((edit.state, edit.techniques))
    if entry is None:
        return False
    if isinstance(edit, AddNote):
        return any(note.text == edit.text for note in entry.notes)
    if isinstance(edit, AddEntry):
        return entry.prior is not None
    if isinstance(edit, AdjustPrior):
        told = entry.prior
        return told is not None and (told.gain, told.weight) == (edit.gain, edit.weight)
    return entry.is_deprecated == isinstance(edit, Deprecate)


def edited(entry: KnowledgeEntry | None, edit: EntryEdit, version: int) -> KnowledgeEntry:
    """Return the entry that `edit` makes of `entry`; None stands for one that there is not."""
    entry = entry or KnowledgeEntry(state=edit.state, techniques=edit.techniques)
    if isinstance(edit, AddEntry | AdjustPrior):
        source = f"{edit.author}: {edit.reason}"[:WORDS_LIMIT]
        prior = Prior(gain=edit.gain, weight=edit.weight, source=source)
        return entry.model_copy(update={"prior": prior})
    if isinstance(edit, AddNote):
        note = Note(text=edit.text, evidence=edit.evidence, version=version)
        return entry.model_copy(update={"notes": latest_notes((*entry.notes, note))})
    return entry.model_copy(update={"is_deprecated": isinstance(edit, Deprecate)})


def latest_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the latest notes in their order, one for each text."""
    by_text: dict[str, Note] = {}
    for note in sorted(notes, key=_age):
        by_text[note.text] = note
    return tuple(sorted(by_text.values(), key=_age)[-NOTE_LIMIT:])


def _age(note: Note) -> tuple[int, str, tuple[str, ...]]:
    return note.version, note.text, note.evidence
