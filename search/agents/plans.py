"""Plans and reflections as they are kept with the run: hypotheses and lessons."""

from typing import Literal

from kopt.kernels.record import Record
from kopt.search.knowledge.policy.posterior import Prediction

Origin = Literal["model", "fallback"]
"""Whether a model gave an answer, or a rule had to because no usable answer came."""


class Hypothesis(Record):
    """One idea for a candidate that is not written yet."""

    slot: str
    """Id of the slot that it fills; empty in the reserve."""
    family: str
    name: str
    """A few words, unlike those of the other hypotheses."""
    hypothesis: str
    """The change, and why it should be faster."""
    mechanism: str
    """The property of the hardware that makes it faster."""
    expected_gain: float
    """Fraction by which it should be faster than its parent: 0.1 for 10 %. A guess."""
    risk: str
    evidence: str
    """The numbers or documents that it stands on."""
    parents: tuple[int, ...]
    """`seq` of the candidates to start from, the skeleton first."""
    techniques: tuple[str, ...] = ()
    """Ids of the techniques that it applies, in their order; empty where it names none."""
    state: str | None = None
    """Id of the performance state of the first parent; None without memory."""
    predicted_gain: float | None = None
    """Gain that memory expects of the techniques there: ln(speed after / speed before)."""
    predicted_interval: tuple[float, float] | None = None
    """95 % interval of the next result, ln."""


class Draw(Record):
    """A technique that was drawn from the knowledge base, with what was expected of it then."""

    slot: str
    """Id of the slot that it fills; empty for one that the planner was offered."""
    candidate: int
    """`seq` of the program that it was drawn for."""
    state: str
    """Id of that program's performance state."""
    technique: str
    prediction: Prediction
    is_exploration: bool
    """Drawn because little is known of it."""
    why: str


class Plan(Record):
    """The hypotheses of one round."""

    hypotheses: tuple[Hypothesis, ...]
    """One for each slot, in the order of the slots."""
    reserve: tuple[Hypothesis, ...] = ()
    """Surplus, the most promising first."""
    draws: tuple[Draw, ...] = ()
    """Techniques that the knowledge base offered."""
    origin: Origin = "model"
    """fallback: at least one slot was filled by rule."""
    why: str = ""
    """Why a rule had to; empty where none had to."""


class Lesson(Record):
    """The lesson of one candidate's result."""

    candidate: int
    """Its `seq`."""
    text: str


class Reflection(Record):
    """The lessons of one round."""

    digest: str
    """The round in two or three sentences."""
    lessons: tuple[Lesson, ...]
    directions: tuple[str, ...]
    """Changes to try next, the most promising first."""
    avoid: tuple[str, ...]
    """Changes not to repeat, each with its reason."""
    origin: Origin = "model"
    why: str = ""
    """Why a rule had to answer; empty where a model did."""
