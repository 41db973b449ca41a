"""Inputs and results of the agents' roles: plain data, made from the run's store.

The run's driver fills the views and keeps the answers; nothing here calls a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kopt.kernels.check_result import CheckResult
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import Record
from kopt.search.advice.fitting_note import FittingNote
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.selector import Drawn
from kopt.search.knowledge.records import ProfileSignature, Sample, State
from kopt.search.records.members import LineageKind, Member
from kopt.search.selection.family_standing import FamilyStanding

from .plans import Hypothesis, Origin, Reflection
from .slots import Slot


@dataclass(frozen=True)
class Documents:
    """The documents of the candidates' evaluations that are shown, by `seq`."""

    profiles: Mapping[int, ProfileResult] = field(default_factory=dict[int, ProfileResult])
    """Profiles of the beam as far as there are any; the leader's is the one that matters."""
    checks: Mapping[int, CheckResult] = field(default_factory=dict[int, CheckResult])
    """Checks of candidates that failed."""


@dataclass(frozen=True)
class Advice:
    """State, techniques and notes of the knowledge base for one program."""

    candidate: int
    """Its `seq`."""
    state: State
    confidence: float
    """Score of the match of the program with the state, 0 to 1."""
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
    """Slots that the planner fills; empty for the reflector."""
    reserve_wanted: int = 0
    """How many hypotheses beyond the slots are asked for."""
    documents: Documents = field(default_factory=Documents)
    reading: str = ""
    """Documents about the leader's bottleneck; the agents fill it themselves."""
    noted: tuple[FittingNote, ...] = ()
    """The notes that fit the leader's code; the agents fill them too."""
    reflections: tuple[Reflection, ...] = ()
    """Reflections on the earlier rounds, in their order."""
    hypotheses: Mapping[str, Hypothesis] = field(default_factory=dict[str, Hypothesis])
    """The hypothesis of each branch of the run, by the branch's id."""
    failed_branches: tuple[FailedBranch, ...] = ()
    """Branches of the whole run that led to no candidate."""
    reserve: tuple[Hypothesis, ...] = ()
    """Planned earlier, not written yet."""
    advice: tuple[Advice, ...] = ()
    """Advice on the leader; empty without memory and for the reflector."""


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
    """Documents of the parents."""
    lessons: tuple[str, ...] = ()
    """Lessons of the run so far, the newest last."""
    advice: Advice | None = None
    """Advice on the first parent; None without memory."""


@dataclass(frozen=True)
class FailedCandidate:
    """A candidate of the branch that fell short, for the fixer."""

    member: Member
    kind: Literal["failed", "regressed"]
    """failed: its check or build. regressed: it passed and is slower than its parent."""
    documents: Documents = field(default_factory=Documents)
    """Documents of the candidate and of its parents."""


@dataclass(frozen=True)
class WrittenCandidate:
    """A complete candidate, not evaluated yet."""

    source: str
    note: str
    """The change and why it should be faster, in its author's words."""


@dataclass(frozen=True)
class GaveUp:
    """A branch that led to no candidate."""

    kind: Literal["refused", "truncated", "malformed", "too_long", "unknown_stop", "call_failed"]
    why: str
    """In a sentence."""


@dataclass(frozen=True)
class LearningView:
    """A batch of results, for the learner."""

    id: str
    """`r4/learn0`: what the ids of its calls begin with, unique in the run."""
    base: KnowledgeBase
    """The present base, with the samples absorbed already."""
    samples: tuple[Sample, ...]
    """The newest last; of many the learner is shown the latest."""
    endings: Mapping[str, str] = field(default_factory=dict[str, str])
    """The result of a sample's candidate, in a line, by the sample's id."""


@dataclass(frozen=True)
class StateQuestion:
    """A program whose state the rules cannot tell: several known ones are equally near."""

    id: str
    """`r4/state0`."""
    signature: ProfileSignature
    rivals: tuple[State, ...]
    """The choice, the one that the rules would take first."""
    profile: ProfileResult | None = None


@dataclass(frozen=True)
class TechniqueQuestion:
    """A state for which memory offers nothing."""

    id: str
    """`r4/propose0`."""
    base: KnowledgeBase
    state: State
    """Known to `base`, or about to be."""
    signature: ProfileSignature
    profile: ProfileResult | None = None


@dataclass(frozen=True)
class StateDecision:
    """Which of the rivals it is."""

    state: str
    """Id of a state."""
    decided_by: Literal["rule", "model"]
    reason: str
    """In a sentence; where the rule had to decide, why the model did not."""


@dataclass(frozen=True)
class SoftView:
    """A candidate that has passed its full check, for the verifier."""

    id: str
    """`r5/verify/r2b3`."""
    member: Member
    check: CheckResult | None
    """Its full check; None where the document cannot be read."""


FindingKind = Literal["removed", "precision", "special_case", "library", "harness"]
Verdict = Literal["no_objection", "reject", "check_again"]


class Objection(Record):
    """Something that a check cannot see, shown by lines of the source."""

    kind: FindingKind
    lines: tuple[str, ...]
    """Lines of the source without comments that show it; at least one."""
    text: str
    """The mistake that the lines show."""


class SoftVerdict(Record):
    """The result of reading a candidate: objections, never an approval."""

    verdict: Verdict
    """reject and check_again only with a finding."""
    findings: tuple[Objection, ...] = ()
    origin: Origin = "model"
    """fallback: there was no usable answer, so measurement alone decides."""
    why: str = ""
    """Parts of the answer that were left out, or why there is none."""
