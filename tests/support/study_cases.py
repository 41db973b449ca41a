"""Small studies with known answers: runs as a test states them."""

from pathlib import Path
from typing import Any

from kopt.config.search_settings import load_search_settings
from kopt.kernels.status import Provenance
from kopt.search.records.budget import Budget
from kopt.search.study.outcome import RunOutcome, RunStanding, TargetReach
from kopt.search.study.plan import Arm, StudyPlan
from kopt.search.study.study_report import StudyReport, study_of
from kopt.search.study.study_statistics import Ending


def outcome(
    speed: float | None,
    cost: int = 10,
    ending: Ending = "reached",
    interval: tuple[float, float] | None = None,
    **fields: Any,
) -> RunOutcome:
    """Return a run of `speed` that spent `cost` candidates, each 1,000 tokens and a cent."""
    reach = TargetReach(
        ending=ending, candidate=1, candidates=cost, tokens=cost * 1000, usd=cost / 100
    )
    known: dict[str, Any] = {
        "winner": 1,
        "speed": speed,
        "speed_interval": interval,
        "provenance": Provenance.ESTIMATED if interval is None else Provenance.MEASURED,
        "baseline": None,
        "ratio": speed,
        "target": reach,
        "candidates": cost,
        "tokens": cost * 1000,
        "usd": cost / 100,
        "spent_s": 1.0,
        "stop_detail": None,
    }
    return RunOutcome(**(known | fields))


def plan(*kernels: str, arms: tuple[str, ...] = ("full", "memory_off"), **fields: Any) -> StudyPlan:
    """Return a plan on sim, of one repeat."""
    search = load_search_settings().with_beam(2, 1)
    known: dict[str, Any] = {
        "id": "study-20260101-120000-000",
        "arms": tuple(Arm(name=name, search=search) for name in arms),
        "kernels": kernels or ("made_up_b8",),
        "repeats": 1,
        "target": 1.3,
        "budget": Budget(),
        "seed": 0,
        "device": "sim",
        "gpu": None,
        "arch": "sm_100a",
        "has_base": False,
        "kopt_version": "0.0",
        "created_us": 1_000_000,
    }
    return StudyPlan(**(known | fields))


def study(plan: StudyPlan, folder: Path, **outcomes: RunOutcome | None) -> StudyReport:
    """Return the report of `plan` whose runs of an arm all came to what is given by its name."""
    standings = tuple(
        RunStanding(
            cell=cell,
            status="not_begun" if (found := outcomes[cell.arm]) is None else "done",
            outcome=found,
        )
        for cell in plan.cells()
    )
    return study_of(plan, standings, folder)
