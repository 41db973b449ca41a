"""The plan that `kopt run --dry-run` shows: rounds, roles, cost, and what the budget allows.

Nothing is called for it and nothing is written. Without a key the rounds hold kernels that kopt
writes, or sweeps, and cost nothing; the plan then says what agents would cost.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import Field

from kopt.config.gpu_specs import GpuSpec
from kopt.config.providers import Provider
from kopt.config.search_settings import ROLES, SearchSettings
from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Record
from kopt.search.agents.agent_context import BriefingFacts, make_briefing
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.models.model_source import ModelSource
from kopt.search.models.prices import load_prices
from kopt.search.records.budget import Budget
from kopt.search.runs.run import RunRequest
from kopt.tools.pytorch.generated import generated_kernels

from .expectations import ASSUMPTIONS, agent_rounds
from .role_forecast import Planned, RoleForecast, forecast_role

RoundKind = Literal["start", "agents", "rollouts", "generated", "sweep", "combine", "tune"]
_SEARCHED: tuple[RoundKind, ...] = ("agents", "rollouts", "generated", "sweep")


class RoundForecast(Record):
    """One round."""

    round: int
    kind: RoundKind
    expected_candidates: int
    """Estimated, repairs left out."""
    most_candidates: int
    """Computed, every repair included."""


class RunPlan(Record):
    """The rounds, roles and cost of a run that is not begun."""

    schema_: Literal["kopt.run-plan/1"] = Field(default="kopt.run-plan/1", alias="schema")
    status: Literal["passed"] = "passed"
    kernel: str
    device: str
    arch: str
    asks_models: bool
    """Whether there is a model to ask; without one the rounds cost nothing."""
    provider: Provider
    """Who would be asked."""
    rounds: tuple[RoundForecast, ...]
    roles: tuple[RoleForecast, ...]
    """The cost of agents, whether or not they would be asked."""
    expected_usd: float | None
    """It is None where the client that is asked reports no cost."""
    most_usd: float | None
    """Without a budget. With one in dollars a run never costs more than that. None likewise."""
    budget: str
    allows: str
    """The reach of the budget, in a sentence."""
    assumptions: tuple[str, ...]
    """Assumptions behind the expected figures."""


def plan_run(request: RunRequest, settings: Settings, gpu: GpuSpec) -> RunPlan:
    """Return what the run that `request` asks for would do on `gpu`.

    Raises:
        ToolError: No such kernel, or the starting source cannot be read.
        SetupError: The price of a model is not known, or a prompt is damaged.
    """
    problem, workload = find_kernel(request.kernel, settings.problems)
    start = read_candidate(request.start or problem.folder / "reference.cu")
    facts = BriefingFacts(
        problem=problem,
        workload=workload,
        gpu=gpu,
        is_measured=request.gpu is not None,
        start=start,
        techniques=() if request.search.memory == "off" else tuple(load_seed().techniques.values()),
    )
    briefing = make_briefing(facts, request.search)
    prices, size = load_prices(settings.home), len(start.source.encode())
    planned = Planned(request.search, briefing, prices, size)
    roles = tuple(forecast_role(role, planned) for role in ROLES)
    provider = request.search.models.provider
    asks_models = request.asks_models and ModelSource(provider).exists(settings)
    of_agents = tuple(_rounds_of_agents(request.search))
    rounds = of_agents if asks_models else tuple(_rounds_without(request, problem))
    return RunPlan(
        kernel=request.kernel,
        device=request.device,
        arch=request.arch,
        asks_models=asks_models,
        provider=provider,
        rounds=rounds,
        roles=roles,
        expected_usd=_sum(one.expected_usd for one in roles),
        most_usd=_sum(one.most_usd for one in roles),
        budget=str(request.budget),
        allows=_allows(request.budget, (rounds, of_agents), roles),
        assumptions=ASSUMPTIONS,
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum; None where an amount is not known."""
    known = list(amounts)
    return None if None in known else sum(one or 0.0 for one in known)


def _rounds_without(request: RunRequest, problem: Problem) -> Iterator[RoundForecast]:
    """Yield the rounds of a run that asks no model."""
    search = request.search
    kind: RoundKind = "sweep" if generated_kernels(problem, request.arch) is None else "generated"
    yield _round(0, "start", 1, 1)
    for number in range(1, search.beam.refine_rounds + 1):
        yield _round(number, kind, search.sweep_size, search.sweep_size)


def _rounds_of_agents(search: SearchSettings) -> Iterator[RoundForecast]:
    is_usual = search.strategy == "beam" and search.agent == "full"
    yield _round(0, "start", 1, 1 + search.written_starts * is_usual)
    kind: RoundKind = "rollouts" if search.strategy == "maic_rl" else "agents"
    repairs = 1 + search.fix_attempts + 1
    rounds = agent_rounds(search)
    last = len(rounds)
    for number, (one, most) in enumerate(
        zip(rounds, agent_rounds(search, at_most=True), strict=False), 1
    ):
        yield _round(number, kind, one.branches, most.branches * repairs)
    if last and search.combine_top_k > 1:
        last += 1
        yield _round(last, "combine", 1, repairs)
    yield _round(last + 1, "tune", search.sweep_size, search.sweep_size)


def _round(number: int, kind: RoundKind, expected: int, most: int) -> RoundForecast:
    return RoundForecast(
        round=number, kind=kind, expected_candidates=expected, most_candidates=most
    )


def _allows(
    budget: Budget,
    rounds: tuple[Sequence[RoundForecast], Sequence[RoundForecast]],
    roles: Sequence[RoleForecast],
) -> str:
    """Return what each limit of the budget is enough for, as far as that can be expected.

    `rounds` are what would be done, and what agents would do: only they spend dollars and tokens.
    """
    done, of_agents = rounds
    would = "with agents " if done is not of_agents else ""
    usd, tokens = (
        _sum(one.expected_usd for one in roles),
        sum(one.expected_tokens for one in roles),
    )
    candidates = sum(one.expected_candidates for one in done)
    limits = (
        (f"{would}its dollars", budget.usd, usd, of_agents),
        (f"{would}its tokens", budget.tokens, tokens, of_agents),
        ("its evaluations", budget.evaluations, candidates, done),
    )
    parts = [
        _share(name, limit / expected, sum(one.kind in _SEARCHED for one in whose))
        for name, limit, expected, whose in limits
        if limit is not None and expected
    ]
    if usd is None:
        parts.append("Codex reports no cost, so no dollars limit it: --budget 2Mtok limits tokens")
    elif budget.usd is None:
        parts.append("it sets no limit in dollars: --budget '$5' would, and is never exceeded")
    if budget.seconds is not None or budget.gpu_seconds is not None:
        parts.append("how far its time reaches cannot be told beforehand")
    return "; ".join(parts) or "a run without agents costs nothing"


def _share(name: str, share: float, rounds: int) -> str:
    if share >= 1.0:
        return f"{name} are {share:.1f} times what is expected"
    return (
        f"{name} are {share:.0%} of what is expected, about {share * rounds:.1f} of {rounds}"
        " rounds; the run stops there with what it has found and can be resumed with more"
    )
