"""Which places a round has: for each of the beam's members, for merging, for what is left.

Pure: the same population and settings give the same slots. What is tried in a slot is the
planner's to say.
"""

from dataclasses import dataclass
from typing import Literal

from kopt.config.search_settings import SearchSettings
from kopt.kernels.record import Record

from .agents.plans import Hypothesis
from .proposer import LineageKind, Population

SlotKind = Literal["new", "refine", "expand", "cross", "retry", "reserve"]


class Slot(Record):
    """One candidate that a round has a place for."""

    id: str
    """refine-LABEL, expand-LABEL-1, cross-LABEL-LABEL, retry-LABEL, new-1; reserve-0 is the first
    hypothesis of the reserve."""
    kind: SlotKind
    """new: a family of its own, from the starting point. retry: the failed hypothesis again, with
    its error. reserve: a hypothesis that was planned earlier."""
    lineage: LineageKind
    parents: tuple[int, ...]
    """`seq` of the candidates to start from, the skeleton first."""
    why: str
    """In a few words, with the numbers behind it."""


@dataclass(frozen=True)
class PopulationView:
    """All that the slots are decided by."""

    population: Population
    is_first: bool
    """Whether nothing was planned for this run before."""
    past_slots: frozenset[str] = frozenset()
    """Ids of the slots of all earlier rounds."""
    reserve: tuple[Hypothesis, ...] = ()
    """Planned earlier, not written yet; the most promising first."""


def reserve_wanted(view: PopulationView, settings: SearchSettings) -> int:
    """Return how many hypotheses the planner is asked for beyond the slots."""
    return (settings.reserve_factor - 1) * settings.beam.width if view.is_first else 0
