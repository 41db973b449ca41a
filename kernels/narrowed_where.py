"""A `where` that claims a part of a header's domain: the conditions that set the part apart."""

import re
from collections.abc import Iterator, Sequence

from .domain import domain
from .header import CandidateHeader
from .problem import Problem, Workload


def narrowed_where(header: CandidateHeader, problem: Problem, kept: Sequence[Workload]) -> str:
    """Return a predicate that holds for `kept` and for no other workload of the header's domain.

    It is the shortest of: a bound of one variable axis, its values, all axes of each workload. What
    `where` demands already stays demanded.

    Args:
        header: Parsed against `problem`.
        problem: Names the variable axes.
        kept: Some workloads of the domain, at least one.
    """
    names = {workload.name for workload in kept}
    others = [entry for entry in domain(header, problem) if entry.name not in names]
    condition = next(_conditions(problem, kept, others))
    if header.where == "true":
        return condition
    return f"{_grouped(header.where)} and {_grouped(condition)}"


def _conditions(
    problem: Problem, kept: Sequence[Workload], others: Sequence[Workload]
) -> Iterator[str]:
    """Yield the conditions that tell `kept` from `others`, simplest first."""
    variable = [axis for axis, expression in problem.axes.items() if expression is None]
    values = {axis: _values(kept, axis) for axis in variable}
    for axis, inside in values.items():
        outside = _values(others, axis)
        if all(value > inside[-1] for value in outside):
            yield f"{axis} <= {inside[-1]}"
        if all(value < inside[0] for value in outside):
            yield f"{axis} >= {inside[0]}"
    for axis, inside in values.items():
        if not set(inside) & set(_values(others, axis)):
            yield " or ".join(f"{axis} == {value}" for value in inside)
    yield " or ".join(
        f"({' and '.join(f'{axis} == {entry.axes[axis]}' for axis in variable)})" for entry in kept
    )


def _values(workloads: Sequence[Workload], axis: str) -> list[int]:
    return sorted({workload.axes[axis] for workload in workloads})


def _grouped(predicate: str) -> str:
    """Return `predicate` so that `and` can follow it."""
    return f"({predicate})" if re.search(r"\bor\b", predicate) else predicate
