"""Hypotheses without a planner: by rule for slots that it left empty, and for minimal agents.

The same population gives the same hypotheses. `agent: minimal` gets a kernel and what is known of
it, and hands in the next kernel: without plan, tools or memory, to be compared with.
"""

from collections.abc import Iterator, Sequence

from kopt.kernels.families import FAMILY_CHANGES
from kopt.search.advice.suggestions import Suggestion

from .plans import Hypothesis, Plan
from .slots import Slot
from .views import RoundView

_GENERAL = (
    "vectorization",
    "thread_utilization",
    "register_caching",
    "reduction",
    "pass_fusion",
    "ilp_unroll",
    "shape_specialization",
    "launch_bounds",
    "grid_shape",
    "async_pipeline",
    "coarsening",
    "cache_policy",
    "algebra",
)
"""Families that fit almost any kernel, what is cheap to try and often helps first."""


def fill_by_rule(
    view: RoundView,
    empty: Sequence[Slot],
    suggestions: Sequence[Suggestion],
    taken: Sequence[Hypothesis],
) -> Iterator[Hypothesis]:
    """Yield a hypothesis for each of the `empty` slots, in their order.

    Args:
        view: The round.
        empty: Slots without a hypothesis.
        suggestions: What is known to limit the leader.
        taken: Hypotheses of the other slots: their families are left to them.
    """
    used = {one.family for one in taken}
    left = list(suggestions)
    for slot in empty:
        fitting = next((one for one in left if _fits(one, slot)), None)
        if fitting is None:
            family = _next_family(view, slot, used)
            text, evidence = FAMILY_CHANGES[family], "none: chosen by rule"
        else:
            left.remove(fitting)
            family, text = fitting.families[0], fitting.text
            evidence = f"{fitting.provenance.value} by rule" if fitting.provenance else "by rule"
        used.add(family)
        yield Hypothesis(
            slot=slot.id,
            family=family,
            name=f"{family} by rule",
            hypothesis=text,
            mechanism=FAMILY_CHANGES[family],
            expected_gain=0.0,
            risk="not considered",
            evidence=evidence,
            parents=slot.parents,
        )


def _fits(suggestion: Suggestion, slot: Slot) -> bool:
    """Return whether a suggestion speaks of the slot's parents."""
    if not suggestion.families:
        return False
    wanted = {"cross": ("cross",), "combine": ("cross",), "fix": ("fix",)}.get(
        slot.lineage, ("note", "trait", "family")
    )
    kinds = ("fix",) if slot.kind == "retry" else wanted
    return suggestion.kind in kinds and suggestion.parents == slot.parents


def _next_family(view: RoundView, slot: Slot, used: set[str]) -> str:
    """Return the parent's family for what stays close to it, else one that no slot has."""
    if slot.kind in ("refine", "cross", "retry") and slot.parents:
        return view.members[slot.parents[0]].family
    untried = [family for family in _GENERAL if family in view.untried]
    for family in (*untried, *_GENERAL):
        if family not in used:
            return family
    return "other"


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
