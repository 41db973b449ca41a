"""Parameters of which `make test` takes some: the others, which go the same way, are slow."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_quick(cases: Iterable[Any], count: int) -> list[Any]:
    """Return `cases` as parameters; those behind the first `count` are marked `slow`.

    A tuple among them holds the values of several names.
    """
    found: list[Any] = []
    for number, case in enumerate(cases):
        values: list[Any] = [case]
        if isinstance(case, tuple):
            values = [*case]
        found.append(pytest.param(*values, marks=[] if number < count else [pytest.mark.slow]))
    return found
