"""Scalars of a case: on hidden inputs eps and scales take other values than the problem's.

A kernel that writes the value of eps into its code is right wherever that value is asked for. Cases
with a hidden seed therefore launch it with, and ask the oracle for, a quarter to four times the
value. Not all of them (`InputCase.keeps_scalars`): a kernel may be wrong at the problem's value
alone, too. Integers keep theirs: they count or choose. A scalar that no launch takes cannot reach
the kernel and keeps its value; the result names it (`fixed_scalars`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from kopt.kernels.plan import Argument, Launch, LaunchPlan
from kopt.kernels.problem import Problem, Workload

from .cases import InputCase

_FACTORS = (0.25, 0.5, 2.0, 4.0)  # powers of two: as exact in float32 as the value itself


def vary_scalars(
    problem: Problem, cases: Sequence[InputCase], plans: Mapping[str, LaunchPlan]
) -> tuple[InputCase, ...]:
    """Return the cases; those with a hidden seed have scalars of their own, if they may.

    Args:
        problem: Names the scalars and their values.
        cases: Of any of its workloads.
        plans: By workload name: only a scalar that a launch takes can be another.
    """
    return tuple(
        replace(one, scalars=_values(problem, one, plans[one.workload.name]))
        if one.hidden and not one.keeps_scalars
        else one
        for one in cases
    )


def fixed_scalars(problem: Problem, plans: Iterable[LaunchPlan]) -> tuple[str, ...]:
    """Return the scalars that no launch takes: the kernel can only have their values written in."""
    taken = {name for plan in plans for name in _taken(plan)}
    return tuple(scalar.name for scalar in problem.scalars if scalar.name not in taken)


def with_scalars(
    problem: Problem, workload: Workload, values: Mapping[str, float]
) -> tuple[Problem, Workload]:
    """Return both with the scalars of one case: `values` by name, else those of the workload."""
    if not values and not workload.scalars:
        return problem, workload
    own = workload.model_copy(update={"scalars": {**workload.scalars, **values}})
    return problem.model_copy(update={"scalars": problem.scalars_at(own)}), own


def launched_with(plan: LaunchPlan, values: Mapping[str, float]) -> LaunchPlan:
    """Return the plan whose launches pass `values`, by the scalars' names."""

    def passed(argument: Argument) -> Argument:
        if argument.kind != "float32" or argument.name not in values:
            return argument
        return argument.model_copy(update={"value": values[argument.name]})

    def launched(launch: Launch) -> Launch:
        arguments = tuple(map(passed, launch.arguments))
        return launch.model_copy(update={"arguments": arguments})

    return plan.model_copy(update={"launches": tuple(map(launched, plan.launches))})


def _values(problem: Problem, case: InputCase, plan: LaunchPlan) -> tuple[tuple[str, float], ...]:
    rng = Random(f"{case.seed}/{case.workload.name}/{case.regime}/scalars")
    taken = _taken(plan)
    return tuple(
        (scalar.name, scalar.value * rng.choice(_FACTORS))
        for scalar in problem.scalars_at(case.workload)
        if scalar.dtype == "float32" and scalar.name in taken
    )


def _taken(plan: LaunchPlan) -> set[str]:
    return {argument.name for launch in plan.launches for argument in launch.arguments}
