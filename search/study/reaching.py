"""What it costs to reach a target speed where not every run reaches it.

A run ends in one of three ways: it reached the target at some cost; its budget cut it off before,
so that its cost is censored; or it ended by itself without, and never would have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

Ending = Literal["reached", "cut", "never"]
_HALF = 0.5 + 1e-9  # products of fractions miss 1/2 by some 1e-16


@dataclass(frozen=True)
class Reach:
    """One run on its way to the target."""

    cost: float
    """Spent when the target was reached, else in the whole run."""
    ending: Ending


def cost_per_success(reaches: Sequence[Reach]) -> float:
    """Return the cost of all runs, up to the target or their end, per run that reached it.

    What failures cost is part of it: it is the expected cost if one runs again until the target
    is reached. Infinite where no run reached it.

    Source:
        Hansen, Auger, Ros, Mersmann, Tušar, Brockhoff, "COCO: a platform for comparing continuous
        optimizers in a black-box setting", Optimization Methods and Software 36(1), 2021:
        the expected runtime (ERT).
    """
    successes = sum(one.ending == "reached" for one in reaches)
    return sum(one.cost for one in reaches) / successes if successes else inf


def median_cost(reaches: Sequence[Reach]) -> float:
    """Return the cost within which half of the runs reach the target; infinite where fewer do.

    A censored run counts as one under way up to its cost and then no more; one that never reaches
    the target stays under way for ever.

    Source:
        Kaplan, Meier, "Nonparametric estimation from incomplete observations", Journal of the
        American Statistical Association 53, 1958; runs that never reach it as competing events
        stay at risk in Fine, Gray, ibid. 94, 1999.
    """
    under_way = 1.0
    for cost in sorted({one.cost for one in reaches if one.ending == "reached"}):
        at_risk = sum(one.ending == "never" or one.cost >= cost for one in reaches)
        arrived = sum(one.ending == "reached" and one.cost == cost for one in reaches)
        under_way *= 1.0 - arrived / at_risk
        if under_way <= _HALF:
            return cost
    return inf
