"""Edits are refused with the reason, clamped, and change what they name."""

from dataclasses import replace
from typing import Any

import pytest

from kopt.search.knowledge.edits import (
    AddEntry,
    AddNote,
    AddState,
    AddTechnique,
    AdjustPrior,
    Deprecate,
    Edit,
    refusal,
)
from kopt.search.knowledge.records import (
    GAIN_LIMIT,
    NAME_LIMIT,
    NOTE_LIMIT,
    PRIOR_WEIGHT_LIMIT,
    State,
    Technique,
)
from support.knowledge_cases import ENTRY, SEED, STATE, TECHNIQUE, edit, projected

NEW_STATE = State(id="odd", bottleneck="l2_bound", is_discovered=True)
NEW = Technique(
    id="odd_trick",
    family="other",
    category="general",
    description="d",
    source="s",
    is_discovered=True,
)


def _with(record: Any, **fields: Any) -> Any:
    return record.model_copy(update=fields)


def test_techniques_are_added_up_to_a_limit() -> None:
    many = {f"t{n}": NEW for n in range(NAME_LIMIT - len(SEED.techniques))}
    full = replace(SEED, techniques={**SEED.techniques, **many})
    asked = edit(AddTechnique, technique=NEW)
    assert refusal(asked, SEED, set[str]()) is None
    assert "which is enough" in str(refusal(asked, full, set[str]()))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (edit(AddNote, state="nowhere", text="t"), "no state nowhere"),
        (edit(AddNote, techniques=("magic",), text="t"), "no technique magic"),
        (edit(AddNote, techniques=("tcgen05",), text="t"), "is no entry"),
        (edit(AddNote, evidence=("run-x/1",), text="t"), "no sample run-x/1"),
        (edit(Deprecate, author="model"), "must name the samples"),
        (edit(AddEntry, gain=0.1), "has a prior already"),
        (edit(AddState, state=SEED.states[STATE]), "there is a state"),
        (edit(AddState, state=_with(NEW_STATE, is_discovered=False)), "is_discovered"),
        (edit(AddState, state=_with(NEW_STATE, inherits="nowhere")), "inherits from nowhere"),
        (edit(AddTechnique, technique=SEED.techniques[TECHNIQUE]), "there is a technique"),
        (edit(AddTechnique, technique=_with(NEW, is_discovered=False)), "is_discovered"),
        (edit(AddTechnique, technique=_with(NEW, family="magic")), "no family"),
        (edit(AddTechnique, technique=_with(NEW, prepares=("magic",))), "prepares magic"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_with_the_reason(asked: Edit, why: str) -> None:
    assert why in str(refusal(asked, SEED, set[str]()))


@pytest.mark.parametrize(
    "asked",
    [
        edit(AddNote, evidence=("run-x/1",), text="t"),
        edit(AdjustPrior, author="model", evidence=("run-x/1",), gain=0.1),
        edit(AddEntry, techniques=("tcgen05",), author="model", gain=0.1),
        edit(AddState, state=_with(NEW_STATE, inherits=STATE)),
        edit(AddTechnique, author="model", technique=NEW),
    ],
)
def test_an_edit_that_fits_is_not_refused(asked: Edit) -> None:
    assert refusal(asked, SEED, {"run-x/1"}) is None


@pytest.mark.parametrize(("asked", "made"), [(9.0, GAIN_LIMIT), (-9.0, -GAIN_LIMIT), (0.2, 0.2)])
def test_a_gain_is_clamped(asked: float, made: float) -> None:
    made_edit = edit(AdjustPrior, gain=asked, weight=99.0)
    assert isinstance(made_edit, AdjustPrior)
    assert (made_edit.gain, made_edit.weight) == (made, PRIOR_WEIGHT_LIMIT)


def test_a_new_prior_says_who_set_it_and_why() -> None:
    asked = edit(AdjustPrior, reason="too hopeful", gain=0.02, weight=1.0)
    prior = projected([(1, asked)]).entries[ENTRY].prior
    assert prior is not None
    assert (prior.gain, prior.source) == (0.02, "user: too hopeful")


def test_an_entry_keeps_its_latest_notes() -> None:
    notes = [(n, edit(AddNote, text=f"note {n}")) for n in range(1, NOTE_LIMIT + 3)]
    kept = projected(notes).entries[ENTRY].notes
    assert [note.text for note in kept] == [f"note {n}" for n in range(3, NOTE_LIMIT + 3)]
