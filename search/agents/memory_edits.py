"""The learner's answers: the forms of its three answers, and changes of memory as edits.

A change is taken only if it names what memory knows and rests on samples that were shown; what is
not taken is told with its reason. Numbers are clamped: a model's expectation weighs less than one
result.
"""

from math import log1p
from typing import Literal

from pydantic import Field, ValidationError

from kopt.kernels.families import FAMILIES
from kopt.kernels.record import ToldRecord
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.edits import (
    AddEntry,
    AddNote,
    AddTechnique,
    AdjustPrior,
    Deprecate,
    Edit,
    Revive,
    refusal,
)
from kopt.search.knowledge.evidence import pooled
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import (
    MAX_TECHNIQUE_CHARACTERS,
    Category,
    KnowledgeEntry,
    Sample,
    Technique,
)
from kopt.search.store.taught import MemoryUpdate
from kopt.tools.facts.wording import plain_beginning

from .knowledge_prompt import SampleNames
from .tool_definitions import mistakes_of

MOST_EDITS = 12
"""Most edits of one update: many changes at once would rest on few samples each."""
MODEL_WEIGHT = 0.5
"""Pseudo-tries of an expectation that a model states: half a result."""
LEAST_TRIES = 2
"""Fewest tries of an entry that may be deprecated."""
WORDS = 340
"""Characters of a text that memory keeps; what was left out is counted behind it."""
_LEAST_GAIN, _MOST_GAIN = -0.7, 3.0  # fractions of speed: what memory clamps a prior to

Action = Literal["adjust_prior", "add_entry", "add_note", "deprecate", "revive"]


class Gap(ToldRecord):
    """One place where prediction and result part."""

    state: str
    techniques: tuple[str, ...]
    """Ids, in their order."""
    finding: str
    """What was predicted and what was found, by the numbers."""
    samples: tuple[str, ...]
    """Names of the samples that show it, as s3."""


class PolicyEvaluation(ToldRecord):
    """The first answer."""

    summary: str
    """One or two sentences."""
    gaps: tuple[Gap, ...]
    """The largest first; none where prediction and result agree."""


class Cause(ToldRecord):
    """One reason."""

    assumption: str
    """What the prediction took for granted."""
    cause: str
    """What was different, and how the samples show it."""
    samples: tuple[str, ...]


class Analysis(ToldRecord):
    """The second answer."""

    causes: tuple[Cause, ...]


class EntryChange(ToldRecord):
    """One change of memory."""

    action: Action
    state: str
    """Id of a state."""
    techniques: tuple[str, ...]
    """Ids of techniques: one, or several applied together, in their order."""
    gain: float = Field(allow_inf_nan=False)
    """Expected, as a fraction of speed: 0.1 for 10 %. 0 for notes, deprecate and revive."""
    text: str
    """The note; empty for all other actions."""
    reason: str = Field(min_length=1)
    samples: tuple[str, ...]
    """Names of the samples that it rests on; at least one."""


class TechniqueWords(ToldRecord):
    """A technique that none of the known ones covers."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]+$", max_length=MAX_TECHNIQUE_CHARACTERS)
    """Lower-case words joined by underscores, at most 27 characters."""
    family: str = Field(json_schema_extra={"enum": list(FAMILIES)})
    category: Category
    description: str = Field(min_length=1)
    """What is changed, in a sentence that fits any kernel."""


class NewTechnique(TechniqueWords):
    """One that results ask for."""

    reason: str
    samples: tuple[str, ...]
    """Names of the samples that it rests on; at least one."""


class Update(ToldRecord):
    """The third answer."""

    changes: tuple[EntryChange, ...]
    new_techniques: tuple[NewTechnique, ...]


class _Refused(Exception):
    """A change that is not taken; the text says why."""


def technique_of(said: TechniqueWords, source: str) -> Technique:
    """Return a technique in a model's words."""
    return Technique(
        id=said.id,
        family=said.family,
        category=said.category,
        description=short(said.description),
        source=source,
        is_discovered=True,
    )


def expectation(gain: float) -> float:
    """Return a fraction of speed as an ln ratio, within what memory takes."""
    return log1p(min(max(gain, _LEAST_GAIN), _MOST_GAIN))


def short(text: str) -> str:
    """Return as much of a text as memory keeps."""
    return plain_beginning(text, WORDS)


def edits_of(update: Update, base: KnowledgeBase, names: SampleNames) -> MemoryUpdate:
    """Return the changes of `update` that hold, in its order, new techniques first."""
    edits: list[Edit] = []
    dropped: list[str] = []
    wanted: tuple[NewTechnique | EntryChange, ...] = (*update.new_techniques, *update.changes)
    for said in wanted:
        what = said.id if isinstance(said, NewTechnique) else f"{said.action} {said.state}"
        try:
            if len(edits) == MOST_EDITS:
                raise _Refused(f"more than {MOST_EDITS} changes at once")
            edit = _edit(said, base, names)
            edits.append(edit)
            base = extend(base, [(base.version, edit)], base.version)
        except _Refused as refused:
            dropped.append(plain_beginning(f"{what}: {refused}", WORDS))
        except ValidationError as error:
            dropped.append(plain_beginning(f"{what}: {mistakes_of(error)}", WORDS))
    return MemoryUpdate(edits=tuple(edits), dropped=tuple(dropped))


def _edit(said: NewTechnique | EntryChange, base: KnowledgeBase, names: SampleNames) -> Edit:
    """Return an edit that fits `base` and rests on samples; raises _Refused or ValidationError."""
    samples = names.find(said.samples)
    if not samples:
        raise _Refused("it names no sample that was shown")
    evidence = tuple(sample.id for sample in samples)
    if isinstance(said, NewTechnique):
        edit: Edit = AddTechnique(
            technique=technique_of(said, "named by the learner"),
            reason=short(said.reason),
            evidence=evidence,
            author="model",
        )
    else:
        edit = _entry_edit(said, evidence)
    why = refusal(edit, base, evidence)
    if why is not None:
        raise _Refused(why)
    entry = None
    if isinstance(said, EntryChange):
        entry = base.entries.get((said.state, said.techniques))
    if entry is not None:
        _refuse_unfounded(edit, entry, samples)
    return edit


def _entry_edit(said: EntryChange, evidence: tuple[str, ...]) -> Edit:
    fields = {
        "state": said.state,
        "techniques": said.techniques,
        "reason": short(said.reason),
        "evidence": evidence,
        "author": "model",
    }
    expected = {"gain": expectation(said.gain), "weight": MODEL_WEIGHT}
    match said.action:
        case "adjust_prior":
            return AdjustPrior.model_validate(fields | expected)
        case "add_entry":
            return AddEntry.model_validate(fields | expected)
        case "add_note":
            if not said.text.strip():
                raise _Refused("the note is empty")
            return AddNote.model_validate(fields | {"text": short(said.text)})
        case "deprecate":
            return Deprecate.model_validate(fields)
        case "revive":
            return Revive.model_validate(fields)


def _refuse_unfounded(edit: Edit, entry: KnowledgeEntry, samples: tuple[Sample, ...]) -> None:
    """Refuse what results contradict, or what they say nothing of."""
    if not any(_is_about(sample, entry) for sample in samples):
        raise _Refused("none of its samples has this state or this technique")
    if isinstance(edit, Revive) and not entry.is_deprecated:
        raise _Refused("it is offered already")
    if isinstance(edit, Deprecate):
        results = pooled(one for origins in entry.evidence.values() for one in origins.values())
        if results.gained:
            raise _Refused(f"it has gained {results.gained} times")
        if results.tries < LEAST_TRIES:
            raise _Refused(f"it was tried {results.tries} times, which is too few")


def _is_about(sample: Sample, entry: KnowledgeEntry) -> bool:
    return sample.state == entry.state or bool(set(sample.techniques) & set(entry.techniques))
