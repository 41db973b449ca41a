"""The page and the words of a suite's score: what stands there, escaped, with its curve."""

import re
from xml.etree import ElementTree

import pytest

from kopt.search.reports.suite_page import fast_chart, stairs, suite_page
from kopt.search.reports.suite_words import headline, notes, score_table, task_table
from kopt.tools.suite.score import ScoredTask, Scoring, score_groups
from kopt.tools.suite.suite_score import SuiteScore, fast_curve
from support.bench_results import H100
from support.suite_results import GPU_SET, SIM_SET, scored


def _score(tasks: list[ScoredTask], why: str = "") -> SuiteScore:
    return SuiteScore(
        suite="kb",
        source="kopt",
        over="eager",
        speeds="unavailable" if why else "measured",
        why_unavailable=why,
        set=SIM_SET if why else GPU_SET,
        gpus=() if why else (H100,),
        seed=0,
        scores=score_groups(tasks, Scoring(has_speeds=not why)),
        curve=() if why else fast_curve(tasks),
        tasks=tuple(tasks),
    )


def test_rows_have_the_names_of_published_tables() -> None:
    table = score_table(_score(scored({"a": 2.0, "b": 0.5, "c": None})))
    rows = {row[0]: row[1] for row in table.rows}
    assert rows["ValidRate (fast_0)"].startswith("66.7% (")
    assert rows["fast_1"].startswith("33.3% (")
    assert rows["fast_2"].startswith("0.0%")
    assert rows["Geomean"].startswith("1.000x")
    assert (rows["Min"], rows["Max"]) == ("0.500x", "2.000x")
    assert rows["% > 1x"].startswith("50.0%")


def test_groups_and_sound_tasks_are_columns() -> None:
    degenerate = scored({"b": 9.0}, "level2")[0].model_copy(update={"mark": "degenerate"})
    table = score_table(_score([*scored({"a": 2.0}, "level1"), degenerate]))
    assert table.heads == (
        "",
        "all tasks",
        "all tasks, sound",
        "level1",
        "level2",
        "level2, sound",
    )


def test_what_was_not_measured_is_unavailable_and_never_zero() -> None:
    score = _score(scored({"a": None, "b": None}), why="sim measures no time")
    rows = {row[0]: row[1] for row in score_table(score).rows}
    assert {rows[name] for name in ("fast_1", "Geomean", "Max", "SOL score")} == {"unavailable"}
    assert rows["ValidRate (fast_0)"].startswith("0.0%")
    assert headline(score) == "0 of 2 tasks valid; speedups unavailable: sim measures no time."
    assert "Time us, estimated#" in task_table(score).heads


def test_notes_name_what_a_reader_must_know() -> None:
    odd = [
        scored({"zeros": 9.0})[0].model_copy(update={"mark": "degenerate", "why_marked": "const"}),
        scored({"copies": 2.0})[0].model_copy(update={"is_like_for_like": False}),
        ScoredTask(task="untimed", group="all", is_valid=True, status=None),
        ScoredTask(task="rnn", group="all", mark="unsupported", is_valid=False, status=None),
    ]
    score = _score(odd).model_copy(update={"not_run": ("later",), "excluded": ("huge",)})
    told = "\n".join(notes(score))
    assert "1 task not run: they count as not valid." in told
    assert "left out of the columns called sound: zeros" in told
    assert "Unsupported, counted as not valid: rnn." in told
    assert "neither run nor counted: huge" in told
    assert "Not like for like, 1 task" in told
    assert "counted as not faster: untimed" in told


def test_the_page_is_whole_and_escaped() -> None:
    tasks = scored({"a": 2.0, "b": None})
    tasks[1] = tasks[1].model_copy(update={"reason": "<script>alert(1)</script>"})
    page = suite_page(_score(tasks))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r'(src|href)="', page)
    assert '<script type="application/json" id="suite">' in page
    assert "fast_p by p" in page


def test_the_curve_is_left_out_where_nothing_was_measured() -> None:
    assert "fast_p by p" not in suite_page(_score(scored({"a": None}), why="sim"))


@pytest.mark.parametrize("speeds", [{"a": 2.0, "b": None, "c": 1.0}, {"a": 300.0, "b": 0.1}])
def test_the_curve_stays_within_its_frame(speeds: dict[str, float | None]) -> None:
    chart = ElementTree.fromstring(fast_chart(_score(scored(speeds))))
    width, height = float(chart.attrib["width"]), float(chart.attrib["height"])
    lines = [one.attrib["points"] for one in chart if one.tag == "polyline"]
    assert len(lines) == 2  # by the speedup, and by the lower end of its interval
    for points in lines:
        for x, y in (map(float, point.split(",")) for point in points.split()):
            assert 0.0 <= x <= width
            assert 0.0 <= y <= height
    is_beyond = "lie beyond the right edge" in ElementTree.tostring(chart, "unicode")
    assert is_beyond is (300.0 in speeds.values())


def test_the_curve_falls_after_each_speedup() -> None:
    assert stairs([(1.0, 0.5), (2.0, 0.25)]) == [
        (0.0, 0.5),
        (1.0, 0.5),
        (1.0, 0.25),
        (2.0, 0.25),
        (2.0, 0.0),
    ]
