"""What the agents are shown and what they hand back: plain data, made from the run's store.

Whoever drives the run fills the views and keeps the answers; nothing here calls a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kopt.kernels.check_result import CheckResult
from kopt.kernels.profile_result import ProfileResult
from kopt.search.advice.notes import FittingNote
from kopt.search.knowledge.policy.selector import Drawn
from kopt.search.knowledge.records import State
from kopt.search.records.members import LineageKind, Member
from kopt.search.selection.family_standing import FamilyStanding

from .plans import Hypothesis, Reflection
from .slots import Slot


@dataclass(frozen=True)
class Documents:
    """The documents of the candidates' evaluations that are shown, by `seq`."""

    profiles: Mapping[int, ProfileResult] = field(default_factory=dict[int, ProfileResult])
    """Of the beam as far as there are any; the leader's is the one that matters."""
    checks: Mapping[int, CheckResult] = field(default_factory=dict[int, CheckResult])
    """Of candidates that failed."""


@dataclass(frozen=True)
class Advice:
    """What the knowledge base says of one program."""

    candidate: int
    """Its `seq`."""
    state: State
    confidence: float
    """Of the match of the program with the state, 0 to 1."""
    drawn: tuple[Drawn, ...] = ()
    """Techniques to try on it, with what is expected of them; empty where one was chosen."""
    notes: tuple[str, ...] = ()
    """Remarks on what is drawn, or on the technique that was chosen."""


@dataclass(frozen=True)
class FailedBranch:
    """A hypothesis that led to no candidate."""

    hypothesis: Hypothesis
    why: str


@dataclass(frozen=True)
class RoundView:
    """One round as planner and reflector see it."""

    round: int
    """The round that is planned, or that has just been evaluated."""
    members: tuple[Member, ...]
    """Every candidate of the run, by `seq`."""
    beam: tuple[int, ...]
    """`seq` of the kept candidates, best first."""
    standings: tuple[FamilyStanding, ...]
    untried: tuple[str, ...]
    """Families that no candidate has claimed."""
    slots: tuple[Slot, ...] = ()
    """What the planner fills; empty for the reflector."""
    reserve_wanted: int = 0
    """How many hypotheses beyond the slots are asked for."""
    documents: Documents = field(default_factory=Documents)
    reading: str = ""
    """What documents say about the leader's bottleneck; the agents fill it themselves."""
    noted: tuple[FittingNote, ...] = ()
    """The notes that fit the leader's code; the agents fill them too."""
    reflections: tuple[Reflection, ...] = ()
    """Of the earlier rounds, in their order."""
    hypotheses: Mapping[str, Hypothesis] = field(default_factory=dict[str, Hypothesis])
    """What each branch of the run followed, by its id."""
    failed_branches: tuple[FailedBranch, ...] = ()
    """Of the whole run."""
    reserve: tuple[Hypothesis, ...] = ()
    """Planned earlier, not written yet."""
    advice: tuple[Advice, ...] = ()
    """On the leader; empty without memory and for the reflector."""


@dataclass(frozen=True)
class BranchTask:
    """One candidate to be written."""

    id: str
    """`r2/b3`: what the ids of its model calls begin with, unique in the run."""
    lineage: LineageKind
    """cross and combine are the combiner's, all others the coder's."""
    hypothesis: Hypothesis
    parents: tuple[Member, ...]
    """With their sources, the skeleton first; for a retry also the candidate that failed."""
    documents: Documents = field(default_factory=Documents)
    """Of the parents."""
    lessons: tuple[str, ...] = ()
    """What the run has learned so far, the newest last."""
    advice: Advice | None = None
    """On the first parent; None without memory."""


@dataclass(frozen=True)
class Failure:
    """A candidate of the branch that fell short, for the fixer."""

    member: Member
    kind: Literal["failed", "regressed"]
    """failed: its check or build. regressed: it passed and is slower than its parent."""
    documents: Documents = field(default_factory=Documents)
    """Its own and its parents'."""


@dataclass(frozen=True)
class Written:
    """A complete candidate, not evaluated yet."""

    source: str
    note: str
    """What was done and why it should be faster, in its author's words."""


@dataclass(frozen=True)
class GaveUp:
    """A branch that led to no candidate."""

    kind: Literal["refused", "truncated", "malformed", "too_long", "unknown_stop", "call_failed"]
    why: str
    """In a sentence."""
