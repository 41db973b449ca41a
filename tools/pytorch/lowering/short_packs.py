"""Whether packs of a row are long enough for what is made of neighbours: groups, and pairs."""

import re
from collections.abc import Iterable

from kopt.kernels.expressions import ExpressionError

from .row_body import RowBody
from .row_plan import NotRowByRowError, RowPlan
from .sizes import Size, SizeTable, product

_WARP = 32
_NO_HEADER = re.compile(r"\bKOPT_|\bIndex\b")
"""What code has and an expression of the header has not."""


def refuse_short_packs(plan: RowPlan, body: RowBody, sizes: SizeTable) -> None:
    """Return if the packs of a written kernel are long enough.

    Raises:
        NotRowByRowError: A group may take more than a warp, or a pack may have one element, and a
            byte of packed codes has two.
    """
    length = product(plan.inner).code
    if plan.group > _WARP and not body.divisors <= {length, str(plan.group)}:
        raise NotRowByRowError("packs are too short for a warp to have a group")
    if plan.of("codes") and not _are_even({length, *body.divisors}, sizes):
        raise NotRowByRowError("packs are too short for a byte with codes of two elements")


def _are_even(divisors: Iterable[str], sizes: SizeTable) -> bool:
    """Return whether constants in CUDA code, which a pack's length divides, are known and even."""
    headers = [_NO_HEADER.sub("", code).replace("/", "//") for code in divisors]
    try:
        values = [value for one in headers for value in sizes.values(Size(one, one))]
    except ExpressionError:
        return False
    return all(value % 2 == 0 for value in values)
