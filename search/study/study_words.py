"""The words and tables of a study's report, for any form of page: nothing is escaped yet."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import exp, log
from statistics import fmean

from kopt.config.counted import counted
from kopt.search.reports.sections import Table

from .figures import Figure
from .outcome import RunStanding
from .study_report import ArmFigures, StudyReport

PLACES = "What memory is worth"
INTERVALS = (
    "Intervals are 95 %: percentiles over grids of whole kernels and whole repeats that are drawn"
    " anew (pigeonhole bootstrap). With fewer than six kernels they are too short (docs/study.md),"
    " and of a single run there is none."
)
COSTS = (
    "Cost per success: of all runs, up to the target or their end, per run that reached it. Median:"
    " within which half of the runs reach it; a run that its budget cut is censored, one that ended"
    " by itself without never reaches it."
)
DUELS = (
    "Won, lost: runs that are surely faster, or slower, than the one of {reference} on the same"
    " kernel in the same repeat; open: intervals overlap, or the change is below {effect:.0%}."
)

BEST = "; the best is the fastest candidate of a kernel that any run of this study found"


def speed_words(report: StudyReport) -> str:
    """Return what speeds are in this study, with their provenance."""
    if report.plan.gpu is None:
        return f"times the speed of the start, {report.provenance}"
    return f"speedup over the baseline, {report.provenance}"


def headlines(report: StudyReport) -> Iterator[str]:
    """Yield how each arm compares with the reference, in a sentence."""
    reference = report.plan.reference.name
    if report.ended < report.planned:
        yield f"{report.ended} of {report.planned} runs have ended; the figures are of these."
    for arm in report.arms:
        if arm.ratio is None or arm.ratio.value is None:
            continue
        speed = f"{_figure(arm.ratio, '{:.2f}')} times the speed of {reference}"
        sure = ", no sure difference" if _is_open(arm.ratio) else ""
        yield f"{arm.arm}: {speed} ({report.provenance}{sure}); {_cost_words(arm, reference)}."


def facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    """Yield what was compared, where, and how far it is."""
    plan = report.plan
    yield "Study", f"{report.study}, {report.status}"
    begun = datetime.fromtimestamp(plan.created_us / 1e6, UTC)
    yield "Begun", f"{begun:%Y-%m-%d %H:%M} UTC, kopt {plan.kopt_version}"
    gpu = "" if plan.gpu is None else f" ({plan.gpu.name}, {plan.gpu.uuid})"
    yield "Device", f"{plan.device}{gpu}, compiled for {plan.arch}"
    yield "Kernels", ", ".join(plan.kernels)
    yield (
        "Runs",
        (
            f"{report.ended} of {report.planned}: {counted(len(plan.arms), 'arm')},"
            f" {counted(len(plan.kernels), 'kernel')}, {counted(plan.repeats, 'repeat')};"
            f" budget of each {plan.budget}, seeds from {plan.seed}"
        ),
    )
    yield "Target", f"{plan.target_words} ({speed_words(report)}){BEST if plan.is_share else ''}"
    begin = "the file that was given" if plan.has_base else "the packaged seed"
    if plan.based:
        begin += f" ({', '.join(plan.based)}: as a file of its own)"
    yield (
        "Memory",
        (
            f"each arm and repeat has a base of its own, begun as {begin} and carried from kernel"
            " to kernel; promoted winners are hidden from all"
        ),
    )


def sections(report: StudyReport) -> Iterator[tuple[str, Table]]:
    """Yield every table but that of the runs, with its title; none is wider than a terminal."""
    target, over = report.plan.target_words, f"Over {report.plan.reference.name}"
    heads: tuple[str, ...] = ("Runs", f"Speed ({speed_words(report)})", over, "Won, lost, open")
    yield "Speed", _arm_table(report, heads, _speed_cells)
    heads = (f"Reached {target}", "Candidates per success", over, "Median")
    yield f"Candidates to {target}", _arm_table(report, heads, _candidates_cells)
    heads = ("Tokens per success", over, "USD per success, computed")
    yield f"Tokens and dollars to {target}", _arm_table(report, heads, _cost_cells)
    yield PLACES, _place_table(report)
    yield f"Kernels ({speed_words(report)})", _kernel_table(report)
    heads = ("Candidates#", "Tokens#", "USD, computed#", "ln(speed) per Mtok#")
    yield "Spent in all", _arm_table(report, heads, _spent_cells)


def _arm_table(
    report: StudyReport, heads: tuple[str, ...], cells: Callable[[ArmFigures], tuple[str, ...]]
) -> Table:
    """Return a row for each arm."""
    return Table(("Arm", *heads), tuple((arm.arm, *cells(arm)) for arm in report.arms))


def _speed_cells(arm: ArmFigures) -> tuple[str, ...]:
    """Return speed, and how the arm's runs stand against the first arm's."""
    lacking = f" ({arm.without_winner} without a winner)" if arm.without_winner else ""
    speed, ratio = _figure(arm.speed, "{:.3f}x"), _figure(arm.ratio, "{:.3f}")
    return f"{arm.runs}{lacking}", speed, ratio, _duels(arm)


def _candidates_cells(arm: ArmFigures) -> tuple[str, ...]:
    """Return how many candidates reaching the target took."""
    cut = f" ({arm.cut} cut by budget)" if arm.cut else ""
    cost = arm.candidates_to_target
    per_success, ratio = _figure(cost.per_success, "{:.1f}"), _figure(cost.ratio, "{:.2f}")
    return f"{arm.reached} of {arm.runs}{cut}", per_success, ratio, _median(arm)


def _cost_cells(arm: ArmFigures) -> tuple[str, ...]:
    """Return what reaching the target cost."""
    tokens, usd = arm.tokens_to_target, arm.usd_to_target
    ratio = _figure(tokens.ratio, "{:.2f}")
    return _figure(tokens.per_success, "{:,.0f}"), ratio, _figure(usd.per_success, "{:.2f}")


def _spent_cells(arm: ArmFigures) -> tuple[str, ...]:
    """Return what all runs of the arm took."""
    gain = "-" if arm.log_speedup_per_mtok is None else f"{arm.log_speedup_per_mtok:.3f}"
    return str(arm.candidates), f"{arm.tokens:,}", f"{arm.usd:.2f}", gain


def _place_table(report: StudyReport) -> Table:
    """Return a row for each arm at each place: what a base that has seen kernels is worth."""
    rows = tuple(
        (
            one.arm,
            str(one.place),
            f"{one.reached} of {one.runs}",
            "not reached" if one.median_candidates is None else f"{one.median_candidates:g}",
        )
        for one in report.places
    )
    heads = (
        "Arm",
        "Kernels seen before#",
        f"Reached {report.plan.target_words}",
        "Median candidates",
    )
    return Table(heads, rows)


def _kernel_table(report: StudyReport) -> Table:
    """Return a row for each kernel: the geometric mean of each arm's speeds over the repeats."""
    arms = [arm.name for arm in report.plan.arms]
    rows = tuple(
        (kernel, *(_mean_speed(report, arm, kernel) for arm in arms))
        for kernel in report.plan.kernels
    )
    return Table(("Kernel", *(f"{arm}#" for arm in arms)), rows)


def run_table(report: StudyReport) -> Table:
    """Return a row for each run, in the order in which they are made."""
    heads = (
        *("Run", "Arm", "Repeat#", "Kernel", "Status", "Speed#", "Target", "Candidates#"),
        *("Tokens#", "USD#", "Ended because"),
    )
    return Table(heads, tuple(tuple(_run_cells(one)) for one in report.runs))


def notes(report: StudyReport) -> tuple[str, ...]:
    """Return how the figures are to be read."""
    reference = report.plan.reference
    return (
        INTERVALS,
        COSTS,
        DUELS.format(reference=reference.name, effect=reference.search.min_effect),
    )


def _run_cells(one: RunStanding) -> Iterator[str]:
    yield from (one.cell.run, one.cell.arm, str(one.cell.repeat + 1), one.cell.kernel, one.status)
    outcome = one.outcome
    if outcome is None:
        yield from ("",) * 6
        return
    target, after = outcome.target, ""
    if target.ending == "reached":
        after = f" after {counted(target.candidates, 'candidate')}, {target.tokens:,} tokens"
    yield "-" if outcome.speed is None else f"{outcome.speed:.3f}x"
    yield f"{target.ending}{after}"
    yield from (str(outcome.candidates), f"{outcome.tokens:,}", f"{outcome.usd:.2f}")
    yield outcome.stop_detail or ""


def _mean_speed(report: StudyReport, arm: str, kernel: str) -> str:
    own = [one for one in report.runs if one.cell.arm == arm and one.cell.kernel == kernel]
    logs = [log(one.outcome.speed) for one in own if one.outcome and one.outcome.speed]
    return f"{exp(fmean(logs)):.3f}x" if logs else ""


def _cost_words(arm: ArmFigures, reference: str) -> str:
    if not arm.reached:
        return f"no run reached the target, of {arm.runs}"
    cost = arm.candidates_to_target.ratio
    if cost is None or cost.value is None:
        return f"{arm.reached} of {arm.runs} runs reached the target, none of {reference} did"
    tokens = arm.tokens_to_target.ratio
    words = f"{_figure(cost, '{:.2f}')} times its candidates"
    if tokens is not None and tokens.value is not None:
        words += f" and {_figure(tokens, '{:.2f}')} times its tokens"
    return f"{words} per run that reached the target"


def _duels(arm: ArmFigures) -> str:
    duels = arm.duels
    return "-" if duels is None else f"{duels.wins}, {duels.losses}, {duels.inconclusive}"


def _median(arm: ArmFigures) -> str:
    median = arm.candidates_to_target.median
    if median.value is None and arm.runs:
        return "over half do not reach it"
    return _figure(median, "{:.0f}")


def _is_open(figure: Figure) -> bool:
    """Return whether a ratio may be one."""
    if figure.interval is None:
        return False
    low, high = figure.interval
    return (low is None or low < 1) and (high is None or high > 1)


def _figure(figure: Figure | None, form: str) -> str:
    """Return a number with its interval; `-` for none."""
    if figure is None or figure.value is None:
        return "-"
    value = form.format(figure.value)
    if figure.interval is None:
        return f"{value} (no interval)"
    low, high = ("unbounded" if end is None else form.format(end) for end in figure.interval)
    return f"{value} ({low} to {high})"
