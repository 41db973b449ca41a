"""How budgets are written and compared."""

import pytest

from kopt.config.errors import ToolError
from kopt.config.providers import PROVIDERS
from kopt.config.search_settings import load_search_settings
from kopt.search.records.budget import UNLIMITED, Budget, parse_budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("50", Budget(evaluations=50)),
        ("90s", Budget(seconds=90.0)),
        ("10m", Budget(seconds=600.0)),
        ("2h", Budget(seconds=7200.0)),
        ("1.5h", Budget(seconds=5400.0)),
        ("$5", Budget(usd=5.0)),
        ("$0.25", Budget(usd=0.25)),
        ("2.5usd", Budget(usd=2.5)),
        ("2Mtok", Budget(tokens=2_000_000)),
        ("1.5Mtok", Budget(tokens=1_500_000)),
        ("400ktok", Budget(tokens=400_000)),
        ("900tok", Budget(tokens=900)),
        ("gpu:10m", Budget(gpu_seconds=600.0)),
    ],
)
def test_kind_of_a_limit_is_told_by_its_unit(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


def test_several_limits_are_written_with_commas() -> None:
    budget = parse_budget("50, 2h,$5,2Mtok,gpu:10m")
    assert budget == Budget(
        evaluations=50, seconds=7200.0, usd=5.0, tokens=2_000_000, gpu_seconds=600.0
    )
    assert str(budget) == ("50 evaluations or 7200 s or 2,000,000 tokens or $5 or 600 s of the GPU")


NO_BUDGETS = """
0|0s|-5|1.5|1e3s|10 minutes|5d|$|$0|$-1|$1e9|2mtok|0ktok|0.4tok|gpu:10|gpu:0s|5,|,5|$nan|9999999999
"""


@pytest.mark.parametrize("text", ["", "\u0665", *NO_BUDGETS.strip().split("|")])
def test_anything_else_is_refused_with_all_forms_shown(text: str) -> None:
    with pytest.raises(ToolError, match=r"evaluations \(50\) or a time \(90s, 10m, 2h\), dollars"):
        parse_budget(text)


@pytest.mark.parametrize("text", ["50,60", "$5,5usd", "90s,2h"])
def test_two_limits_of_one_kind_are_refused(text: str) -> None:
    with pytest.raises(ToolError, match="twice"):
        parse_budget(text)


@pytest.mark.parametrize("name", ["evaluations", "seconds", "tokens", "usd", "gpu_seconds"])
def test_larger_budget_is_not_covered_by_a_smaller_one(name: str) -> None:
    smaller, larger = Budget.model_validate({name: 4}), Budget.model_validate({name: 5})
    assert not smaller.covers(larger)
    assert not smaller.covers(UNLIMITED)
    assert larger.covers(smaller) and smaller.covers(smaller) and UNLIMITED.covers(larger)


def test_a_limit_does_not_cover_one_of_another_kind() -> None:
    assert not Budget(evaluations=4).covers(Budget(seconds=60.0))


def test_dollars_become_whole_millionths() -> None:
    assert Budget(usd=0.29).microusd == 290_000
    assert UNLIMITED.microusd is None


def test_a_share_is_of_every_limit_and_leaves_one_of_what_is_counted() -> None:
    budget = Budget(evaluations=40, seconds=600.0, usd=20.0)
    assert budget.share(0.25) == Budget(evaluations=10, seconds=150.0, usd=5.0)
    assert budget.share(0.01) == Budget(evaluations=1, seconds=6.0, usd=0.2)
    assert Budget().share(0.5) == Budget()


def test_dollars_that_nobody_names_are_those_of_the_settings_where_a_cost_is_known() -> None:
    search = load_search_settings()
    for provider in PROVIDERS[:2]:
        assert UNLIMITED.for_models(search.by(provider)).usd == 25.0
        assert parse_budget("3usd").for_models(search.by(provider)).usd == 3.0
    by_codex = search.by("codex")
    assert UNLIMITED.for_models(by_codex) == UNLIMITED
    assert parse_budget("3usd,2Mtok").for_models(by_codex) == parse_budget("2Mtok")
