"""What a header claims: the workloads of its domain and the choices of its tune values."""

from collections.abc import Mapping
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
