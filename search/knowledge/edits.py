"""The edits of a knowledge base: what a rule, a model or a user may change besides learning.

Numbers are clamped and texts are data; `editing.py` refuses what names nothing.
"""

from typing import Annotated, Literal

from pydantic import Field

from kopt.kernels.record import Record
from kopt.search.knowledge.records import (
    Finite,
    Identifier,
    Name,
    State,
    Technique,
    Techniques,
    Words,
)


class _Edit(Record):
    """What every edit says."""

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


class AddEntry(_OfEntry):
    """Techniques worth trying in a state, with what is expected of them."""

    kind: Literal["add_entry"] = "add_entry"
    gain: Finite
    """ln ratio, clamped to records.GAIN_LIMIT."""
    weight: Finite = 1.0
    """Pseudo-tries, clamped to records.PRIOR_WEIGHT_LIMIT."""


class AdjustPrior(_OfEntry):
    """Another expectation for an entry that exists."""

    kind: Literal["adjust_prior"] = "adjust_prior"
    gain: Finite
    """ln ratio, clamped."""
    weight: Finite = 1.0
    """Pseudo-tries, clamped."""


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
