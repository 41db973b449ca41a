"""The two charts of a study: the speed of each arm, and the cost of the target place by place."""

from kopt.search.reports.svg import Scale, figure, line, mark, polyline, text, value_axis

from .study_report import StudyReport
from .study_words import speed_words

_WIDTH, _HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 30, 40
_BASE = _HEIGHT - _BOTTOM


def arm_chart(report: StudyReport) -> str:
    """Return an SVG element: every run's speed, and each arm's mean with its interval."""
    names = [arm.arm for arm in report.arms]
    across = Scale(-0.5, len(names) - 0.5, _LEFT, _WIDTH - _RIGHT)
    runs = [(one.cell, one.outcome) for one in report.runs if one.outcome is not None]
    speeds = [outcome.speed for _, outcome in runs if outcome.speed is not None]
    up = Scale(0.0, max([*speeds, 1.0]) * 1.15, _BASE, _TOP)
    parts = [*value_axis(up, (_LEFT, _WIDTH - _RIGHT), speed_words(report)), _floor()]
    parts.append(line("even", (_LEFT, up.px(1.0)), (_WIDTH - _RIGHT, up.px(1.0))))
    for cell, outcome in runs:
        if outcome.speed is not None:
            place = (across.px(names.index(cell.arm)) - 24, up.px(outcome.speed))
            title = f"{cell.kernel}, repeat {cell.repeat + 1}: {outcome.speed:.3f}x"
            parts.append(mark("passed", place, title))
    for number, arm in enumerate(report.arms):
        x = across.px(number)
        parts.append(text(x, _BASE + 16, arm.arm, "middle"))
        if arm.speed.value is None:
            continue
        ends = arm.speed.interval
        if ends is not None and None not in ends:
            low, high = (up.px(end or 0.0) for end in ends)
            parts.append(line("spread", (x, low), (x, high)))
        parts.append(mark("kept", (x, up.px(arm.speed.value)), f"{arm.arm}: geometric mean"))
        parts.append(text(x + 12, up.px(arm.speed.value) + 4, f"{arm.speed.value:.3f}x"))
    label = f"Speed of every run and the mean of each arm: {speed_words(report)}"
    return figure((_WIDTH, _HEIGHT), label, parts)


def place_chart(report: StudyReport) -> str:
    """Return an SVG element: candidates to the target after so many kernels, a line for each arm.

    Runs that did not reach the target are crosses on the axis.
    """
    places = len(report.plan.kernels)
    across = Scale(-0.5, places - 0.5, _LEFT, _WIDTH - _RIGHT)
    medians = [one.median_candidates for one in report.places if one.median_candidates is not None]
    up = Scale(0.0, max([*medians, 1.0]) * 1.15, _BASE, _TOP)
    unit = f"median candidates to {report.plan.target:g}x"
    parts = [*value_axis(up, (_LEFT, _WIDTH - _RIGHT), unit), _floor()]
    parts += [text(across.px(n), _BASE + 16, str(n), "middle") for n in range(places)]
    for arm in report.plan.arms:
        own = [one for one in report.places if one.arm == arm.name]
        points = [
            (across.px(one.place), up.px(one.median_candidates))
            for one in own
            if one.median_candidates is not None
        ]
        parts.append(polyline("best", points))
        parts += [mark("passed", point, arm.name) for point in points]
        parts += [
            mark("failed", (across.px(one.place), _BASE), f"{arm.name}: not reached by half")
            for one in own
            if one.median_candidates is None
        ]
        if points:
            parts.append(text(points[-1][0] + 8, points[-1][1] + 4, arm.name))
    parts.append(text(_WIDTH / 2, _HEIGHT - 6, "kernels that the base has seen before", "middle"))
    return figure((_WIDTH, _HEIGHT), f"{unit}, by the kernels that came before", parts)


def _floor() -> str:
    return line("axis", (_LEFT, _BASE), (_WIDTH - _RIGHT, _BASE))
