"""Forecast of a study's runs and cost: the plan of every run, added up."""

from typing import Literal

from pydantic import Field

from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.search.forecast.run_plan import RunPlan, plan_run
from kopt.search.models.model_source import ModelSource

from .plan import StudyPlan
from .study_folder import request_of


class ArmForecast(Record):
    """All runs of one arm."""

    arm: str
    runs: int
    expected_candidates: int
    """Estimated, repairs left out."""
    expected_tokens: int
    """Estimated."""
    expected_usd: float
    """Estimated; of each run no more than its budget in dollars."""
    most_usd: float
    """Computed: the budgets in dollars, else every reply as long and as late as it may be."""


class StudyForecast(Record):
    """The runs and cost of a study that is not begun."""

    schema_: Literal["kopt.study-forecast/1"] = Field(
        default="kopt.study-forecast/1", alias="schema"
    )
    status: Literal["passed"] = "passed"
    kernels: tuple[str, ...]
    repeats: int
    target: float
    device: str
    arch: str
    budget: str
    """Budget of each run."""
    runs: int
    arms: tuple[ArmForecast, ...]
    expected_usd: float
    most_usd: float
    asks_models: bool
    """Whether agents think of candidates; else kopt writes them."""
    can_begin: bool
    """Whether there is a model to ask, or none is needed."""
    assumptions: tuple[str, ...]
    """Assumptions behind the expected figures."""


def forecast_study(plan: StudyPlan, settings: Settings, gpu: GpuSpec) -> StudyForecast:
    """Return what `plan` would do and cost on `gpu`.

    Raises:
        ToolError: No such kernel.
        SetupError: The price of a model is not known, or a prompt is damaged.
    """
    runs = {name: list[RunPlan]() for name in (arm.name for arm in plan.arms)}
    for cell in plan.cells():
        if cell.repeat == 0:  # the others cost the same
            runs[cell.arm].append(plan_run(request_of(plan, cell), settings, gpu))
    arms = tuple(_arm(name, of_arm, plan) for name, of_arm in runs.items())
    assumptions = next(iter(runs.values()))[0].assumptions
    if not plan.asks_models:
        unpaid = {"expected_tokens": 0, "expected_usd": 0.0, "most_usd": 0.0}
        arms, assumptions = tuple(one.model_copy(update=unpaid) for one in arms), ()
    return StudyForecast(
        kernels=plan.kernels,
        repeats=plan.repeats,
        target=plan.target,
        device=plan.device,
        arch=plan.arch,
        budget=str(plan.budget),
        runs=sum(one.runs for one in arms),
        arms=arms,
        expected_usd=sum(one.expected_usd for one in arms),
        most_usd=sum(one.most_usd for one in arms),
        asks_models=plan.asks_models,
        can_begin=not plan.asks_models
        or all(ModelSource(arm.search.models.provider).exists(settings) for arm in plan.arms),
        assumptions=assumptions,
    )


def _arm(name: str, runs: list[RunPlan], plan: StudyPlan) -> ArmForecast:
    limit = plan.budget.usd

    def capped(usd: float) -> float:
        return usd if limit is None else min(usd, limit)

    return ArmForecast(
        arm=name,
        runs=len(runs) * plan.repeats,
        expected_candidates=plan.repeats
        * sum(one.expected_candidates for run in runs for one in run.rounds),
        expected_tokens=plan.repeats
        * sum(one.expected_tokens for run in runs for one in run.roles),
        expected_usd=plan.repeats * sum(capped(run.expected_usd or 0.0) for run in runs),
        most_usd=plan.repeats * sum(capped(run.most_usd or 0.0) for run in runs),
    )
