"""The seam between the beam loop and whatever thinks of candidates.

A proposer is shown the population and names new candidates. It keeps no state of its own: with
the same population, seed and count it proposes the same, which is what lets a killed run go on
as if nothing had happened. `rounds/sweep.py` proposes tune values of a source that exists.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field

from kopt.kernels.record import Record
from kopt.kernels.status import Status

from .evaluation import Evaluation

LineageKind = Literal["tune", "refine", "expand", "cross", "fix", "combine"]


class Proposal(Record):
    """One candidate that is proposed for evaluation."""

    source: str
    source_name: str
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    """Values of the declared tune parameters; {} where the source declares none."""
    family: str
    proposer: str
    parents: tuple[int, ...] = ()
    """`seq` of the candidates that it comes from; empty for the starting point."""
    lineage: LineageKind = "tune"
    note: str = ""
    """The hypothesis: why it should be faster; empty without one."""
    techniques: tuple[str, ...] = ()
    """Ids of the techniques that it applies to its parents, in their order, as far as claimed."""


class StepCandidate(Record):
    """One candidate that the caller wants evaluated."""

    source: str
    source_name: str = "candidate.cu"
    """File name shown in diagnostics."""
    hypothesis: str = ""
    """Why it should be faster, in a sentence; empty: the note of its header."""
    family: str = ""
    """A strategy family; empty: the first of its header."""
    parents: tuple[int, ...] = ()
    """Numbers of the run's candidates that it comes from."""
    tune: dict[str, int] | None = None
    """Tune values; those left out have their default."""
    techniques: tuple[str, ...] = ()
    """Ids of the techniques that it applies to its first parent, in their order: what it comes to
    is learned as theirs. Empty: nothing is learned of it."""


@dataclass(frozen=True)
class Member:
    """One candidate of a run with what is known about it."""

    seq: int
    """Number within the run, from 0, in the order of proposal."""
    round: int
    source: str
    source_sha: str
    source_name: str
    tune: dict[str, int]
    family: str
    proposer: str
    parents: tuple[int, ...]
    quick: Evaluation | None
    """The evaluation that the search goes by; None before it ended."""
    full: Evaluation | None
    """The evaluation that a winner needs; None for all who were not put to it."""
    note: str = ""
    """Why it should be faster, in its author's words."""
    lineage: LineageKind = "tune"
    """Its relation to its parents."""
    branch: str | None = None
    """`r2/b3`: the branch of an agents' round that wrote it; None for all others."""
    attempt: int = 0
    """Which of that branch's candidates it is: 0 is the coder's, then the fixes."""
    techniques: tuple[str, ...] = ()
    """Ids of the techniques that it applies to its parents, in their order, as far as claimed."""
    tie: Evaluation | None = None
    """A second, longer measurement, made where the first was too close to another's to decide."""
    again: Evaluation | None = None
    """The full check once more, made where the verifier asked for it."""
    objection: str = ""
    """Why the verifier rejected its source, with the lines; empty where it did not."""

    @property
    def label(self) -> str:
        """Its name wherever a model reads it: `r2b3`, `r2b3f1` for a fix, else its number.

        The number of a branch's candidate depends on which branch came first; the label does not.
        """
        if self.branch is None:
            return str(self.seq)
        return self.branch.replace("/", "") + (f"f{self.attempt}" if self.attempt else "")

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Its place among all candidates, whichever branch came first: what breaks ties."""
        if self.branch is None:
            return self.round, -1, 0, self.seq
        return self.round, int(self.branch.rpartition("b")[2]), self.attempt, 0

    @property
    def passed(self) -> bool:
        """Whether the quick check passed."""
        return self.quick is not None and self.quick.status is Status.PASSED

    @property
    def is_refuted(self) -> bool:
        """Whether a later check failed, gave no time that counts, or its source was rejected."""
        if self.objection or (self.tie is not None and self.tie.cost is None):
            return True
        return self.full is not None and not self.is_confirmed

    @property
    def is_confirmed(self) -> bool:
        """Whether the full check passed, with a time that counts: an impossible one does not."""
        full, again = self.full, self.again
        if full is None or full.status is not Status.PASSED or full.cost is None:
            return False
        return again is None or again.status is Status.PASSED

    @property
    def proof(self) -> Evaluation | None:
        """The full check that decided: the second where it found what the first had not."""
        again = self.again
        return self.full if again is None or again.status is Status.PASSED else again

    @property
    def timing(self) -> Evaluation | None:
        """The evaluation with the time that counts: of the most pairs that were measured."""
        return self.quick if self.tie is None or self.tie.cost is None else self.tie

    @property
    def cost(self) -> float | None:
        """What orders it, less is better; None without a passed quick check (`Evaluation.cost`)."""
        return None if self.timing is None else self.timing.cost

    @property
    def latency_us(self) -> float | None:
        """The time of one call, in microseconds; None without a passed quick check."""
        latency = None if self.timing is None else self.timing.latency
        return None if latency is None else latency.value


Gains = Callable[[Member, Sequence[str]], Mapping[str, float]]
"""From a candidate and ids of techniques to what each may gain there, ln of the speed's ratio."""


def unknown_gains(_: Member, __: Sequence[str]) -> Mapping[str, float]:
    """Return that nothing is known of any technique."""
    return {}


@dataclass(frozen=True)
class Population:
    """All that a proposer sees."""

    round: int
    """The round that is being filled."""
    seed: int
    """Seed of the run."""
    members: tuple[Member, ...]
    """Every candidate so far, by `seq`."""
    beam: tuple[Member, ...]
    """The kept candidates, best first."""
    gains: Gains = unknown_gains
    """Drawn from what the knowledge base believes: the same whenever it is asked in a round."""


class Proposer(Protocol):
    """Something that thinks of candidates."""

    def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
        """Return at most `count` new candidates, the most promising first; () when out of ideas.

        A proposal whose source and tune values are in the population already is dropped.
        """
        ...
