"""The score of a suite in words and tables, for any form of page: nothing here is escaped yet.

Figures stand in rows and tasks in columns, all of them and each group, so that a published table
can be set beside any of them. docs/suite.md says which row is which of theirs.
"""

from collections.abc import Iterator

from kopt.config.counted import counted, few_of
from kopt.tools.suite.score import GroupScore, ScoredTask
from kopt.tools.suite.score_statistics import ScoreFigure
from kopt.tools.suite.suite_score import SuiteScore

from .sections import Table

_NONE = "unavailable"


def headline(score: SuiteScore) -> str:
    """Return the outcome in a sentence."""
    whole = score.scores[0]
    valid = f"{whole.valid} of {counted(whole.tasks, 'task')} valid"
    if score.speeds == "unavailable":
        return f"{valid}; speedups unavailable: {score.why_unavailable}."
    if whole.geomean.value is None:
        return f"{valid}; no speedup over {score.over} was measured."
    return (
        f"{valid}; geometric mean {ratio_words(whole.geomean)} over {score.over}, of"
        f" {counted(whole.timed, 'timed task')}."
    )


def facts(score: SuiteScore) -> Iterator[tuple[str, str]]:
    """Yield what was scored, and where it was measured."""
    yield "Suite", score.suite
    if score.set is not None:
        kernels = "as suite.yaml names them" if score.set.kernels == "suite" else score.set.kernels
        yield "Kernels", kernels
        yield "Check", f"level {score.set.level} against the fp64 oracle"
        gpus = ", ".join(f"{one.name} ({one.uuid})" for one in score.gpus)
        yield "Device", f"{gpus or score.set.device}, compiled for {score.set.arch}"
    else:
        yield "Check", "KernelBench's own, as its file says"
    yield "Over", score.over
    if score.cost is not None:
        cost = score.cost
        usd = "cost unavailable" if cost.usd is None else f"${cost.usd:.2f} by list prices"
        unpaid = f", {cost.unpaid} of them not paid" if cost.unpaid else ""
        yield (
            "Search",
            (
                f"{cost.candidates:,} candidates, {cost.tokens:,} tokens, {usd},"
                f" in runs of {counted(cost.tasks, 'task')}{unpaid}"
            ),
        )


def score_table(score: SuiteScore) -> Table:
    """Return a row for each figure and a column for each set of tasks."""
    columns = [(_head(one), dict(_figures(one))) for one in score.scores]
    names = list(columns[0][1])
    rows = tuple((name, *(figures[name] for _, figures in columns)) for name in names)
    return Table(("", *(head for head, _ in columns)), rows, _caption(score))


def _head(score: GroupScore) -> str:
    name = score.group or "all tasks"
    return f"{name}, sound" if score.sound_only else name


def _caption(score: SuiteScore) -> str:
    if score.speeds == "unavailable":
        return f"Speedups are unavailable: {score.why_unavailable}."
    return (
        f"Speedups over {score.over}, measured. In brackets: 95 % interval by drawing tasks anew"
        f" (seed {score.seed})."
    )


def _figures(score: GroupScore) -> Iterator[tuple[str, str]]:
    yield "Tasks", str(score.tasks)
    yield "Valid", str(score.valid)
    yield "ValidRate (fast_0)", share_words(score.valid_rate)
    for fast in score.fast:
        yield f"fast_{fast.p:g}", share_words(fast.by_estimate)
    for fast in score.fast:
        yield f"fast_{fast.p:g}, whole interval", share_words(fast.by_interval)
    yield "Geomean", ratio_words(score.geomean)
    yield "Mean", ratio_words(score.mean)
    yield "Median", ratio_words(score.median)
    yield "Min", _number(score.minimum)
    yield "Max", _number(score.maximum)
    yield "% > 1x", share_words(score.above_1x)
    yield "% < 1x", share_words(score.below_1x)
    yield "Geomean, failures 1.0", ratio_words(score.geomean_failures_1x)
    yield "Geomean of those > 1x", ratio_words(score.geomean_above_1x)
    yield "Median of those > 1x", ratio_words(score.median_above_1x)
    yield "SOL score", _with_interval(score.sol_score, "{:.3f}")


def task_table(score: SuiteScore) -> Table:
    """Return a row for each task, in the order of the suite."""
    rows = tuple(
        (
            one.task,
            one.group,
            _standing(one),
            _number(one.speedup),
            _number(one.speedup_low),
            "" if one.sol_score is None else f"{one.sol_score:.3f}",
            " ".join(f"{time:.3f}" for time in one.latency_us),
            _remark(one),
        )
        for one in score.tasks
    )
    times = "Time us, estimated#" if score.set and not score.set.is_measured else "Time us#"
    heads = ("Task", "Group", "Valid", "Speedup#", "at least#", "SOL#", times, "Remark")
    return Table(heads, rows, "at least: the lower end of the 95 % interval.")


def notes(score: SuiteScore) -> Iterator[str]:
    """Yield what a reader must know to read the numbers."""
    if score.not_run:
        yield f"{counted(len(score.not_run), 'task')} not run: they count as not valid."
    unsupported = [one.task for one in score.tasks if one.mark == "unsupported"]
    if unsupported:
        yield f"Unsupported, counted as not valid: {few_of(unsupported)}."
    marked = [one for one in score.tasks if not one.is_sound]
    if marked:
        names = ", ".join(one.task for one in marked)
        yield f"Degenerate or random, left out of the columns called sound: {names}."
    if score.excluded:
        yield f"Excluded, neither run nor counted: {', '.join(score.excluded)}."
    unlike = [one.task for one in score.tasks if not one.is_like_for_like]
    if unlike:
        yield (
            f"Not like for like, {counted(len(unlike), 'task')}: the baseline lays data out"
            " differently or allocates inside its call."
        )
    untimed = [one for one in score.tasks if one.is_valid and one.speedup is None]
    if untimed and score.speeds == "measured":
        names = ", ".join(one.task for one in untimed)
        yield f"Valid without a speedup, counted as not faster: {names}."
    yield "fast_p is over all tasks; means, median, Min, Max and % over timed ones."


def share_words(figure: ScoreFigure) -> str:
    """Return a share in percent with its interval."""
    return _with_interval(figure, "{:.1%}")


def ratio_words(figure: ScoreFigure) -> str:
    """Return a ratio with its interval."""
    return _with_interval(figure, "{:.3f}x")


def _with_interval(figure: ScoreFigure, form: str) -> str:
    if figure.value is None:
        return _NONE
    value = form.format(figure.value)
    if figure.interval is None:
        return value
    low, high = (form.format(end) for end in figure.interval)
    return f"{value} ({low} to {high})"


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}x"


def _standing(task: ScoredTask) -> str:
    if task.is_valid:
        return "yes"
    return "no" if task.status is None else f"no: {task.status.value.replace('_', ' ')}"


def _remark(task: ScoredTask) -> str:
    mark = "" if task.mark is None else f"{task.mark}: {task.why_marked}"
    reason = "" if task.reason == task.why_marked else task.reason
    return "; ".join(part for part in (mark, reason) if part)
