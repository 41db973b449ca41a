"""How budgets are written and compared."""

import pytest

from kopt.config.errors import ToolError
from kopt.search.budget import Budget, parse_budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("50", Budget(evaluations=50)),
        ("90s", Budget(seconds=90.0)),
        ("10m", Budget(seconds=600.0)),
        ("2h", Budget(seconds=7200.0)),
    ],
)
def test_count_and_time_are_told_apart_by_the_unit(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "1.5h", "10 minutes", "m", "5d"])
def test_anything_else_is_refused_with_both_forms_shown(text: str) -> None:
    with pytest.raises(ToolError, match=r"evaluations \(50\) or a time \(90s, 10m, 2h\)"):
        parse_budget(text)


def test_larger_budget_is_not_covered_by_a_smaller_one() -> None:
    assert not Budget(evaluations=4).covers(Budget(evaluations=5))
    assert not Budget(evaluations=4).covers(Budget(seconds=60.0))
    assert Budget(evaluations=4).covers(Budget(evaluations=4))
    assert Budget().covers(Budget(evaluations=4))
