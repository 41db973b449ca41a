"""`agent: minimal`: a kernel and what is known of it go in, the next kernel comes out.

Nobody plans, reflects or learns, no tool can be used and nothing that the run has found before is
told. It is there to be compared with.
"""

from collections.abc import Sequence

from .plans import Hypothesis, Plan
from .view import RoundView


def plan_nothing(view: RoundView) -> Plan:
    """Return the plan of a round whose authors decide for themselves what to do."""
    return Plan(
        hypotheses=tuple(
            free_hypothesis(slot.id, slot.parents, view.members[slot.parents[0]].family)
            for slot in view.slots
        )
    )


def free_hypothesis(slot: str, parents: Sequence[int], family: str) -> Hypothesis:
    """Return what is kept of a candidate whose author is told no more than to make it faster."""
    return Hypothesis(
        slot=slot,
        family=family,
        name="faster",
        hypothesis="Make the kernel faster.",
        mechanism="",
        expected_gain=0.0,
        risk="",
        evidence="",
        parents=tuple(parents),
    )
