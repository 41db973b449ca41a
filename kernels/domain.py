"""What a header claims: the workloads of its domain and the choices of its tune values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from .expressions import ExpressionError, evaluate_predicate, expression_names
from .header import CandidateHeader, Variant
from .problem import Problem, Workload


def domain(header: CandidateHeader, problem: Problem) -> tuple[Workload, ...]:
    """Return the workloads for which `where` holds, in file order; never none (header_parser)."""
    return tuple(workload for workload in problem.workloads if _holds(header.where, workload.axes))


def variant_place(header: CandidateHeader, axes: Mapping[str, int]) -> int:
    """Return the place, from 0, of the variant that a shape takes: the first that holds."""
    return next(place for place, one in enumerate(header.variants) if _holds(one.when, axes))


def unserved_variants(header: CandidateHeader, problem: Problem) -> tuple[Variant, ...]:
    """Return the variants that no workload of the domain takes."""
    taken = {variant_place(header, workload.axes) for workload in domain(header, problem)}
    return tuple(one for place, one in enumerate(header.variants) if place not in taken)


def claims(header: CandidateHeader, problem: Problem, axes: Mapping[str, int]) -> bool:
    """Return whether a shape is claimed: `where` holds, and a workload takes its variant too.

    Args:
        header: Parsed against `problem`.
        problem: Names the workloads.
        axes: Every axis of the shape.
    """
    if not _holds(header.where, axes):
        return False
    taken = {variant_place(header, workload.axes) for workload in domain(header, problem)}
    return variant_place(header, axes) in taken


def default_tune(header: CandidateHeader) -> dict[str, int]:
    """Return the first value of every tune name."""
    return {name: values[0] for name, values in header.tune.items()}


def tune_choices(
    header: CandidateHeader, axes: Mapping[str, int] | None = None
) -> tuple[dict[str, int], ...]:
    """Return every choice of tune values that satisfies `tune_where`, the default first.

    Args:
        header: A parsed header; its choices number at most `MAX_TUNE_CHOICES`.
        axes: The workload's axes. Without them, conditions that name an axis are left open;
            `resolve_plan` decides them.
    """
    known = frozenset(header.tune) | frozenset(axes or ())
    conditions = [text for text in header.tune_where if expression_names(text) <= known]
    choices = (
        dict(zip(header.tune, values, strict=True)) for values in product(*header.tune.values())
    )
    return tuple(
        choice
        for choice in choices
        if all(_holds(text, {**(axes or {}), **choice}) for text in conditions)
    )


def _holds(predicate: str, names: Mapping[str, int]) -> bool:
    """Return whether `predicate` has a value and is true: a division by zero is not."""
    try:
        return evaluate_predicate(predicate, names)
    except ExpressionError:
        return False


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


def named_where(header: CandidateHeader, problem: Problem, axes: Sequence[str]) -> str:
    """Return a predicate that holds only where each of `axes` is a named workload's.

    Args:
        header: Parsed against `problem`; what its `where` demands stays demanded.
        problem: Names the workloads.
        axes: At least one variable axis.
    """
    named = domain(header, problem)
    wanted = [" or ".join(f"{axis} == {value}" for value in _values(named, axis)) for axis in axes]
    if header.where != "true":
        wanted.insert(0, header.where)
    return wanted[0] if len(wanted) == 1 else " and ".join(map(_grouped, wanted))


def _conditions(
    problem: Problem, kept: Sequence[Workload], others: Sequence[Workload]
) -> Iterator[str]:
    """Yield the conditions that tell `kept` from `others`, simplest first."""
    variable = problem.variable_axes
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
