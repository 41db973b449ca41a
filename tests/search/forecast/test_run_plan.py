"""What a run would do and cost, before it is begun."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.search_settings import (
    ROLES,
    RoleSettings,
    SearchSettings,
    load_search_settings,
)
from kopt.config.settings import ClaudeAccess, Settings
from kopt.search.forecast.role_forecast import ConversationSize, expected_cost, most_cost
from kopt.search.forecast.run_plan import RunPlan, plan_run
from kopt.search.models.prices import load_prices
from kopt.search.records.budget import parse_budget
from kopt.search.runs.run import RunRequest
from support.small_silu import KERNEL as SMALL
from support.small_silu import write_small_silu

KERNEL = "silu_and_mul_b8xh14336"
SEARCH = load_search_settings()


def _plan(home: Path, has_key: bool = True, **request: Any) -> RunPlan:
    access = ClaudeAccess(api_key="secret") if has_key else None
    own = home / "problems"
    settings = Settings(home, problems=own if own.is_dir() else None, claude=access)
    asked: dict[str, Any] = {"kernel": KERNEL, **request}
    return plan_run(RunRequest(**asked), settings, gpu_for_arch("sm_100a"))


def _known(amount: float | None) -> float:
    assert amount is not None
    return amount


def _kinds(plan: RunPlan) -> list[str]:
    return [one.kind for one in plan.rounds]


def test_rounds_are_those_of_the_settings_with_the_merge_and_the_sweep_at_the_end(
    tmp_path: Path,
) -> None:
    plan = _plan(tmp_path, search=SEARCH.with_beam(2, 3))
    assert _kinds(plan) == ["start", "agents", "agents", "agents", "combine", "tune"]
    first, later = plan.rounds[1:3]
    assert first.expected_candidates == 2
    repairs = 1 + SEARCH.fix_attempts + 1
    assert first.most_candidates == 2 * repairs
    assert later.most_candidates == SEARCH.with_beam(2, 3).round_size * repairs


def _by_trajectories(**size: int) -> SearchSettings:
    rollouts = SEARCH.maic_rl.model_copy(update=size)
    return SEARCH.model_copy(update={"strategy": "maic_rl", "maic_rl": rollouts})


def test_trajectories_take_their_steps_side_by_side_and_need_no_planner(tmp_path: Path) -> None:
    size = {"trajectories": 3, "at_once": 2, "steps": 2, "most_steps": 3, "actions": 2}
    plan = _plan(tmp_path, search=_by_trajectories(**size, update_every=1))
    assert _kinds(plan) == ["start", *["rollouts"] * 4, "combine", "tune"]
    assert [one.expected_candidates for one in plan.rounds[1:5]] == [4, 4, 2, 2]
    by_role = {one.role: one for one in plan.roles}
    assert by_role["planner"].most_conversations == by_role["reflector"].most_conversations == 0
    assert by_role["coder"].expected_conversations == 12
    assert by_role["coder"].most_conversations == 3 * 3 * 2
    assert by_role["learner"].expected_conversations == 3 * 3


def test_without_memory_nobody_learns(tmp_path: Path) -> None:
    plan = _plan(tmp_path, search=SEARCH.model_copy(update={"memory": "off"}))
    (learner,) = (one for one in plan.roles if one.role == "learner")
    assert (learner.expected_conversations, learner.most_conversations) == (0, 0)


def test_minimal_agent_asks_authors_and_verifier_alone_and_costs_less(tmp_path: Path) -> None:
    minimal = SEARCH.model_copy(update={"agent": "minimal"})
    asked, full = (
        {one.role: one for one in _plan(tmp_path, search=how).roles} for how in (minimal, SEARCH)
    )
    unasked = {role for role, one in asked.items() if one.most_calls == 0}
    assert unasked == {"planner", "reflector", "learner"}
    assert _known(asked["coder"].expected_usd) < _known(full["coder"].expected_usd)
    assert asked["coder"].expected_calls == asked["coder"].expected_conversations


@pytest.mark.parametrize(("is_known", "kind"), [(True, "generated"), (False, "sweep")])
def test_without_a_key_rounds_are_kopts_own_and_what_agents_would_cost_is_told(
    tmp_path: Path, is_known: bool, kind: str
) -> None:
    """Kernels are generated where the problem has a definition, else `tune` values are swept."""
    write_small_silu(tmp_path / "problems", is_known=is_known)
    plan = _plan(tmp_path, has_key=False, kernel=SMALL, search=SEARCH.with_beam(2, 2))
    assert (_kinds(plan), plan.asks_models) == (["start", kind, kind], False)
    assert plan.rounds[1].most_candidates == SEARCH.with_beam(2, 2).sweep_size
    assert _known(plan.expected_usd) > 0


def test_without_a_key_dollars_are_held_against_the_rounds_of_agents(tmp_path: Path) -> None:
    search = _by_trajectories(trajectories=3, at_once=1, steps=4)
    cost = _known(_plan(tmp_path, search=search).expected_usd)
    budget = parse_budget(f"{cost / 2:.4f}usd,20")
    plan = _plan(tmp_path, has_key=False, search=search, budget=budget)
    own = _kinds(plan).count("generated")
    assert "with agents its dollars are 50% of what is expected, about 6.0 of 12" in plan.allows
    assert f" of {own} rounds" in plan.allows.partition("its evaluations")[2]


def test_client_is_asked_without_a_key_and_costs_what_its_provider_makes_known(
    tmp_path: Path,
) -> None:
    by_key = _plan(tmp_path)
    claude = _plan(tmp_path, has_key=False, search=SEARCH.by("claude-code"))
    codex = _plan(tmp_path, has_key=False, search=SEARCH.by("codex"))
    assert claude.asks_models and codex.asks_models
    assert claude.expected_usd == by_key.expected_usd
    assert (codex.expected_usd, codex.most_usd) == (None, None)
    assert {(one.model, one.expected_usd, one.priced) for one in codex.roles} == {
        ("codex:default", None, None)
    }
    assert "Codex reports no cost" in codex.allows
    tokens = sum(one.expected_tokens for one in by_key.roles)
    assert sum(one.expected_tokens for one in codex.roles) == tokens


def test_run_without_rounds_costs_nothing(tmp_path: Path) -> None:
    plan = _plan(tmp_path, search=SEARCH.with_beam(4, 0))
    assert (plan.expected_usd, plan.most_usd) == (0.0, 0.0)


def test_more_rounds_and_a_wider_beam_cost_more(tmp_path: Path) -> None:
    small = _plan(tmp_path, search=SEARCH.with_beam(2, 2))
    longer = _plan(tmp_path, search=SEARCH.with_beam(2, 4))
    wider = _plan(tmp_path, search=SEARCH.with_beam(4, 2))
    assert _known(small.expected_usd) < _known(longer.expected_usd)
    assert _known(small.expected_usd) < _known(wider.expected_usd)


@pytest.mark.parametrize("search", [SEARCH, _by_trajectories()], ids=["beam", "maic_rl"])
def test_no_expectation_is_above_the_most(tmp_path: Path, search: SearchSettings) -> None:
    plan = _plan(tmp_path, search=search)
    assert all(_known(one.expected_usd) <= _known(one.most_usd) for one in plan.roles)
    assert all(one.expected_calls <= one.most_calls for one in plan.roles)
    assert all(one.expected_candidates <= one.most_candidates for one in plan.rounds)


def test_sum_is_that_of_the_roles_and_every_price_has_its_date(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    assert plan.expected_usd == pytest.approx(sum(_known(one.expected_usd) for one in plan.roles))
    assert [one.role for one in plan.roles] == list(ROLES)
    assert all(one.priced for one in plan.roles)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("50", "it sets no limit in dollars"),
        ("$1000000", "times what is expected"),
        ("$0.1", "of 4 rounds; the run stops there with what it has found"),
        ("2h,$1", "how far its time reaches cannot be told beforehand"),
    ],
)
def test_plan_says_what_the_budget_allows(tmp_path: Path, budget: str, said: str) -> None:
    assert said in _plan(tmp_path, budget=parse_budget(budget)).allows


def test_limit_is_compared_with_what_is_expected_of_the_same_kind(tmp_path: Path) -> None:
    plan = _plan(tmp_path, budget=parse_budget("$1,10,100ktok"))
    tokens = sum(one.expected_tokens for one in plan.roles)
    candidates = sum(one.expected_candidates for one in plan.rounds)
    assert f"its dollars are {1 / _known(plan.expected_usd):.0%} of what" in plan.allows
    assert f"its tokens are {100_000 / tokens:.0%} of what" in plan.allows
    assert f"its evaluations are {10 / candidates:.0%} of what" in plan.allows


def test_model_without_a_price_is_refused_before_anything_is_begun(tmp_path: Path) -> None:
    planner = SEARCH.roles.planner.model_copy(update={"model": "claude-unheard-of"})
    roles = SEARCH.roles.model_copy(update={"planner": planner})
    with pytest.raises(SetupError, match="the price of claude-unheard-of is not known"):
        _plan(tmp_path, search=SEARCH.model_copy(update={"roles": roles}))


def test_kernel_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no kernel is called"):
        _plan(tmp_path, kernel="nothing_b8")


def test_plan_is_the_same_whenever_it_is_made_and_leaves_nothing_behind(tmp_path: Path) -> None:
    assert _plan(tmp_path) == _plan(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _talk(replies: int) -> ConversationSize:
    settings = RoleSettings(
        model="claude-opus-5-5", effort="low", max_output_tokens=10_000, tool_calls=0
    )
    return ConversationSize(
        settings=settings,
        system_bytes=30_000,
        opening_bytes=3_000,
        reply_tokens=1_000,
        replies=replies,
        most_replies=2,
    )


def test_single_reply_pays_its_prompt_once_and_reads_the_system_from_the_cache(
    tmp_path: Path,
) -> None:
    cost = expected_cost(_talk(1), load_prices(tmp_path), is_first=False)
    # 1,000 tokens at $4, 10,000 read at $0.2, 1,000 out at $20, each per million
    assert (cost.calls, cost.microusd) == (1, 4_000 + 2_000 + 20_000)


def test_first_conversation_pays_for_writing_the_cache(tmp_path: Path) -> None:
    prices = load_prices(tmp_path)
    first, later = (expected_cost(_talk(1), prices, is_first=flag) for flag in (True, False))
    assert _known(first.microusd) - _known(later.microusd) == 10_000 * 8 - 2_000


def test_conversation_of_several_replies_writes_only_what_is_new_to_the_cache(
    tmp_path: Path,
) -> None:
    cost = expected_cost(_talk(2), load_prices(tmp_path), is_first=False)
    # written for 5 minutes: 1,000, then a reply of 1,000 and a result of 700; read: the rest
    assert cost.microusd == 5 * (1_000 + 1_700) + (10_000 + 11_000) // 5 + 2 * 20_000


def test_most_is_every_byte_a_token_and_nothing_read_from_the_cache(tmp_path: Path) -> None:
    cost = most_cost(_talk(1), load_prices(tmp_path))
    assert (cost.calls, cost.output_tokens) == (2, 20_000)
    # 5,000 bytes and reserve of the opening, twice, and a reply and a result before the second
    other = 2 * 5_000 + 10_000 + 24_000
    assert cost.microusd == 8 * 2 * 30_000 + 5 * other + 20 * 20_000
