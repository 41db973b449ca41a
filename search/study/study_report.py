"""A study as a record for people and programs: every arm's figures, every run.

Recomputed from the plan and the runs each time, so that it can be read while the study goes on.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance

from .figures import (
    Duels,
    Figure,
    Ground,
    Outcomes,
    TargetCost,
    duels,
    log_speedup_per_mtok,
    speed_figure,
    target_cost,
)
from .outcome import RunOutcome, RunStanding, read_standing, read_targets
from .plan import StudyPlan
from .study_statistics import Reach, RunGrid, median_cost

StudyStatus = Literal["done", "paused"]


class ArmFigures(Record):
    """The figures of one arm."""

    arm: str
    runs: int
    """Number of runs that have ended; all figures count these alone."""
    without_winner: int
    """Runs that found no kernel that passes the full check; they count with their start."""
    without_time: int
    """Runs without a speed: in no figure of speed."""
    speed: Figure
    """Geometric mean."""
    ratio: Figure | None
    """Speed over the reference's, on the same kernels and repeats; None for the reference."""
    duels: Duels | None
    """Against the reference; None for the reference itself."""
    reached: int
    """Runs that reached the target."""
    cut: int
    """Runs that their budget ended before: censored."""
    candidates_to_target: TargetCost
    tokens_to_target: TargetCost
    usd_to_target: TargetCost
    candidates: int
    tokens: int
    usd: float
    """Cost of all runs in full, computed from the table of prices."""
    log_speedup_per_mtok: float | None
    """ln(speed over the start) per million tokens; None where no model was asked."""


class PlaceFigures(Record):
    """The runs of one arm that came at the same place: what a base that has seen more is worth."""

    arm: str
    place: int
    """Kernels that the base had seen before."""
    runs: int
    reached: int
    median_candidates: float | None
    """To the target; None: half of them do not reach it."""


class StudyReport(Record):
    """A study as it stands."""

    schema_: Literal["kopt.study/1"] = Field(default="kopt.study/1", alias="schema")
    status: StudyStatus
    """paused: runs are missing; it can be resumed."""
    study: str
    folder: str
    plan: StudyPlan
    provenance: Provenance
    """Provenance of every speed in it."""
    ended: int
    """Runs that have ended, of all that are planned."""
    planned: int
    arms: tuple[ArmFigures, ...]
    """In the order of the plan, the reference first."""
    places: tuple[PlaceFigures, ...]
    runs: tuple[RunStanding, ...]
    """In the order in which they are made."""


def report_study(plan: StudyPlan, settings: Settings) -> StudyReport:
    """Return how the study stands."""
    targets = read_targets(plan, settings)
    standings = tuple(read_standing(cell, targets[cell.kernel], settings) for cell in plan.cells())
    return study_of(plan, standings, settings.studies / plan.id)


def study_of(plan: StudyPlan, standings: tuple[RunStanding, ...], folder: Path) -> StudyReport:
    """Return what the runs of a study come to."""
    by_arm = {arm.name: _outcomes(arm.name, standings) for arm in plan.arms}
    ended = sum(map(len, by_arm.values()))
    return StudyReport(
        status="done" if ended == len(standings) else "paused",
        study=plan.id,
        folder=str(folder),
        plan=plan,
        provenance=Provenance.ESTIMATED if plan.gpu is None else Provenance.MEASURED,
        ended=ended,
        planned=len(standings),
        arms=tuple(_arm_figures(name, by_arm, plan) for name in by_arm),
        places=tuple(_places(standings)),
        runs=standings,
    )


def _outcomes(arm: str, standings: Iterable[RunStanding]) -> Outcomes:
    own = (one for one in standings if one.cell.arm == arm)
    return {
        (one.cell.kernel, one.cell.repeat): one.outcome for one in own if one.outcome is not None
    }


def _arm_figures(name: str, by_arm: Mapping[str, Outcomes], plan: StudyPlan) -> ArmFigures:
    own = by_arm[name]
    reference = None if name == plan.reference.name else by_arm[plan.reference.name]
    ground = Ground(_grid(own), plan.seed, plan.reference.search.min_effect)
    runs = list(own.values())
    return ArmFigures(
        arm=name,
        runs=len(runs),
        without_winner=sum(one.winner is None for one in runs),
        without_time=sum(one.speed is None for one in runs),
        speed=speed_figure(own, ground),
        ratio=None if reference is None else speed_figure(own, ground, reference),
        duels=None if reference is None else duels(own, reference, ground),
        reached=sum(one.target.ending == "reached" for one in runs),
        cut=sum(one.target.ending == "cut" for one in runs),
        candidates_to_target=target_cost("candidates", own, reference, ground),
        tokens_to_target=target_cost("tokens", own, reference, ground),
        usd_to_target=target_cost("usd", own, reference, ground),
        candidates=sum(one.candidates for one in runs),
        tokens=sum(one.tokens for one in runs),
        usd=sum(one.usd for one in runs),
        log_speedup_per_mtok=log_speedup_per_mtok(own),
    )


def _grid(outcomes: Outcomes) -> RunGrid:
    return RunGrid(
        tuple(dict.fromkeys(kernel for kernel, _ in outcomes)),
        tuple(dict.fromkeys(repeat for _, repeat in outcomes)),
    )


def _places(standings: Sequence[RunStanding]) -> Iterable[PlaceFigures]:
    """Yield the figures of every arm at every place that has a run, in the order of arms."""
    groups: dict[tuple[str, int], list[RunOutcome]] = {}
    for one in standings:
        if one.outcome is not None:
            groups.setdefault((one.cell.arm, one.cell.place), []).append(one.outcome)
    arms = list(dict.fromkeys(one.cell.arm for one in standings))
    for arm, place in sorted(groups, key=lambda key: (arms.index(key[0]), key[1])):
        runs = groups[arm, place]
        reaches = [Reach(float(one.target.candidates), one.target.ending) for one in runs]
        median = median_cost(reaches)
        yield PlaceFigures(
            arm=arm,
            place=place,
            runs=len(runs),
            reached=sum(one.ending == "reached" for one in reaches),
            median_candidates=median if median != float("inf") else None,
        )
