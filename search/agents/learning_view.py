"""What learner and verifier are shown and what they hand back: plain data, made from the store.

Whoever drives the run fills the views. What comes back is checked: edits name samples that exist, a
finding quotes lines that stand in the source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kopt.kernels.check_result import CheckResult
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import Record
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.edits import Edit
from kopt.search.knowledge.records import ProfileSignature, Sample, State
from kopt.search.records.members import Member

from .plans import Origin


@dataclass(frozen=True)
class LearningView:
    """What a batch of results says, for the learner."""

    id: str
    """`r4/learn0`: what the ids of its calls begin with, unique in the run."""
    base: KnowledgeBase
    """As it is now, the samples absorbed already."""
    samples: tuple[Sample, ...]
    """The newest last; of many the learner is shown the latest."""
    endings: Mapping[str, str] = field(default_factory=dict[str, str])
    """What became of the candidate of a sample, in a line, by the sample's id."""


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
class Learned:
    """What a model would change in memory."""

    edits: tuple[Edit, ...]
    """Each names what exists and rests on samples that were shown."""
    dropped: tuple[str, ...] = ()
    """What it said besides and why that is not taken, a sentence each."""
    why: str = ""
    """Why there is no more; empty where every answer could be used."""


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


class Finding(Record):
    """Something that a check cannot see, shown by lines of the source."""

    kind: FindingKind
    lines: tuple[str, ...]
    """As they stand in the source, comments left out; at least one."""
    text: str
    """What they show to be wrong."""


class SoftVerdict(Record):
    """What a reading of a candidate came to; it can object and never approve."""

    verdict: Verdict
    """reject and check_again only with a finding."""
    findings: tuple[Finding, ...] = ()
    origin: Origin = "model"
    """fallback: there was no usable answer, so measurement alone decides."""
    why: str = ""
    """What was left out of the answer, or why there is none."""
