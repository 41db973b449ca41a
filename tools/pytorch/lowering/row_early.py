"""What of a row needs none of its reductions, so that it is done while the first is under way."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .reduction import Reduction
from .row_plan import RowOutput, RowPlan, RowResult
from .values import Computed, Guarded, Pointwise, Value, Viewed

_IN_STEPS = ("Moments", "Exponentials")
"""States of reductions that take two loops."""
_WORTH = 3
"""Cost from which on an element is kept: a load, and an operation on another one."""


@dataclass(frozen=True)
class EarlyWork:
    """What is done between the sending and the receiving of partial results."""

    stores: tuple[RowOutput, ...] = ()
    """Outputs that are stored then."""
    groups: tuple[tuple[RowResult, ...], ...] = ()
    """Results of reductions over groups that are kept."""
    products: tuple[Value, ...] = ()
    """float32 elements of the row, computed from several loads, that are kept."""

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.stores or self.groups or self.products)


def early_work(plan: RowPlan) -> EarlyWork:
    """Return what the schedule of a kernel says is done early; nothing without reductions."""
    if not plan.results:
        return EarlyWork()
    reduced = {one for results in (*plan.results, *plan.groups) for one in results}
    rows = plan.of("row", "codes")
    stored, groups, products = list[RowOutput](), list[tuple[RowResult, ...]](), list[Value]()
    if plan.schedule.stores_early:
        stored = [one for one in rows if not _needs(one.value, reduced)]
    if plan.schedule.keeps_products:
        groups = [results for results in plan.groups if _is_early(results[0].reduction, reduced)]
        roots = [one.before_rounding for one in rows]
        roots += [results[0].reduction.value for results in (*plan.results[1:], *plan.groups)]
        products = list(dict.fromkeys(_kept(plan, roots, reduced)))
    return EarlyWork(tuple(stored), tuple(groups), tuple(products))


def _is_early(reduction: Reduction, reduced: set[RowResult]) -> bool:
    is_one_loop = reduction.cheapest_fold.state not in _IN_STEPS
    return is_one_loop and not _needs(reduction.value, reduced)


def _kept(plan: RowPlan, roots: Iterable[Value], reduced: set[RowResult]) -> Iterator[Value]:
    """Yield the longest parts of values that need reductions which need none themselves."""
    row = (*plan.outer, *plan.inner)
    for root in roots:
        if not _needs(root, reduced):
            continue
        for part in _parts(root):
            is_whole = isinstance(part, Pointwise) and part.sizes.same_shape(part.shape, row)
            if _needs(part, reduced):
                yield from _kept(plan, [part], reduced)
            elif is_whole and part.dtype == "float32" and part.cost >= _WORTH:
                yield part


def _needs(value: Value, reduced: set[RowResult]) -> bool:
    if isinstance(value, RowResult):
        return value in reduced
    return any(_needs(part, reduced) for part in _parts(value))


def _parts(value: Value) -> tuple[Value, ...]:
    """Return what a value is computed from."""
    if isinstance(value, Pointwise):
        return value.operands
    if isinstance(value, Viewed | Guarded):
        return (value.base,)
    return value.reads if isinstance(value, Computed) else ()
