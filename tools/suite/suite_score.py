"""The score of a suite as a document: its tasks, its scores, the curve of fast_p, what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record

from .results_folder import ResultsFolder
from .score import THRESHOLDS, GroupScore, ScoredTask, Scoring, score_groups
from .speeds import Over, task_speed
from .suite_file import Suite, SuiteTask
from .task_result import ResultSet, SearchCost, SuiteTaskResult


class CurvePoint(Record):
    """A step of the curve: just below `p` the shares are these."""

    p: float
    by_estimate: float
    """Share of all tasks whose speedup is p or more."""
    by_interval: float | None
    """Share of all tasks whose interval's lower end is p or more."""


class SuiteCost(Record):
    """What the searches behind a suite's kernels have cost together."""

    tasks: int
    """Tasks whose kernel is the winner of a run: the only ones of which a cost is known."""
    candidates: int
    tokens: int
    usd: float | None
    """Computed from list prices, or reported by the clients that asked; None: not of all is it
    known."""
    unpaid: int
    """Tasks of these where a script or a recording answered in Claude's place."""


class SuiteScore(Record):
    """The score of a suite."""

    schema_: Literal["kopt.suite-score/1"] = Field(default="kopt.suite-score/1", alias="schema")
    status: Literal["passed"] = "passed"
    """A score judges no single kernel."""
    suite: str
    source: Literal["kopt", "kernelbench"]
    """kernelbench: of a file of KernelBench's own, checked and timed by its rules."""
    over: str
    """The baseline: best, eager, compile, compile_max, reference, or a file's name."""
    speeds: Literal["measured", "unavailable"]
    """unavailable: on sim, or where no valid task was timed over this baseline."""
    why_unavailable: str = ""
    set: ResultSet | None
    gpus: tuple[DeviceFacts, ...] = ()
    """Every GPU that tasks were timed on."""
    seed: int
    """Seed of the bootstrap."""
    scores: tuple[GroupScore, ...]
    """All tasks first, then without degenerate and random ones, then each group."""
    curve: tuple[CurvePoint, ...]
    tasks: tuple[ScoredTask, ...]
    excluded: tuple[str, ...] = ()
    """Tasks that are neither run nor counted."""
    not_run: tuple[str, ...] = ()
    """Tasks without a result; they count as not valid."""
    cost: SuiteCost | None = None
    """None where no kernel is the winner of a run."""


@dataclass(frozen=True)
class ScoreRequest:
    """What is asked of a score."""

    over: Over = "best"
    thresholds: tuple[float, ...] = THRESHOLDS
    seed: int = 0


def score_suite(suite: Suite, results: ResultsFolder, request: ScoreRequest) -> SuiteScore:
    """Return the score of the results in a folder."""
    over = request.over
    found = results.read_all(task.name for task in suite.counted)
    counted_over = over if results.set.is_measured else None
    tasks = tuple(_scored(task, found.get(task.name), counted_over) for task in suite.counted)
    why = _why_without_speeds(tasks, results.set, over)
    scoring = Scoring(request.thresholds, request.seed, has_speeds=not why)
    gpus = {one.gpu.uuid: one.gpu for one in found.values() if one.gpu is not None}
    return SuiteScore(
        suite=suite.file.name,
        source="kopt",
        over=over,
        speeds="unavailable" if why else "measured",
        why_unavailable=why,
        set=results.set,
        gpus=tuple(gpus.values()),
        seed=request.seed,
        scores=score_groups(tasks, scoring),
        curve=() if why else fast_curve(tasks),
        tasks=tasks,
        excluded=tuple(task.name for task in suite.tasks if task.mark == "excluded"),
        not_run=tuple(
            task.name
            for task in suite.counted
            if task.name not in found and task.name in suite.problem_folders
        ),
        cost=_cost([one.cost for one in found.values() if one.cost is not None]),
    )


def fast_curve(tasks: Sequence[ScoredTask]) -> tuple[CurvePoint, ...]:
    """Return the steps of fast_p by rising p: every speedup, and every lower end of an interval."""
    speeds = [one.speedup for one in tasks if one.speedup is not None]
    lows = [one.speedup_low for one in tasks if one.speedup_low is not None]
    count = len(tasks)
    return tuple(
        CurvePoint(
            p=p,
            by_estimate=sum(one >= p for one in speeds) / count,
            by_interval=sum(one >= p for one in lows) / count if lows else None,
        )
        for p in sorted({*speeds, *lows})
    )


def _scored(task: SuiteTask, result: SuiteTaskResult | None, over: Over | None) -> ScoredTask:
    """Return a task as it counts; over None where nothing was measured."""
    named = {"task": task.name, "group": task.group, "mark": task.mark, "why_marked": task.why}
    if result is None:
        reason = task.why or "not run"
        return ScoredTask.model_validate(
            {**named, "is_valid": False, "status": None, "reason": reason}
        )
    speed = None if over is None else task_speed(result, over)
    times = [one.latency.median_us for one in result.times if one.latency is not None]
    measured: dict[str, object] = {}
    if speed is not None:
        measured = {
            "speedup": speed.speedup,
            "speedup_low": speed.proven,
            "sol_score": speed.sol,
            "is_like_for_like": speed.is_like,
        }
    return ScoredTask.model_validate(
        {
            **named,
            "is_valid": result.is_valid,
            "status": result.status,
            "reason": result.why or ("" if speed else _why_untimed(result, over)),
            "latency_us": tuple(times),
            **measured,
        }
    )


def _why_untimed(result: SuiteTaskResult, over: Over | None) -> str:
    """Return why a valid task has no speed over a baseline."""
    if over is None:
        return "sim measures no time"
    for one in result.times:
        if one.verdict == "impossible":
            return f"{one.workload}: shorter than the memory needs to move its bytes"
    for one in result.times:
        for each in one.rejected:
            return f"{each.name} is no baseline here: {each.reason}"
    return f"not timed over {over}"


def _why_without_speeds(tasks: Sequence[ScoredTask], which: ResultSet, over: Over) -> str:
    if not which.is_measured:
        return "sim measures no time: its times are estimates, and no estimate is a speedup"
    valid = [one for one in tasks if one.is_valid]
    if valid and all(one.speedup is None for one in valid):
        return f"no valid task was timed over {over}; the kernels' own start: --over reference"
    return ""


def _cost(costs: Sequence[SearchCost]) -> SuiteCost | None:
    if not costs:
        return None
    return SuiteCost(
        tasks=len(costs),
        candidates=sum(one.candidates for one in costs),
        tokens=sum(one.tokens for one in costs),
        usd=None if any(one.usd is None for one in costs) else sum(one.usd or 0.0 for one in costs),
        unpaid=sum(not one.is_paid for one in costs),
    )
