"""A study as a record and as files: what is told of its arms, and that nothing is left out."""

import json
from pathlib import Path
from xml.etree import ElementTree

from kopt.search.study.study_page import (
    arm_chart,
    place_chart,
    study_markdown,
    study_page,
    write_study,
)
from kopt.search.study.study_words import headlines
from support.study_cases import outcome, plan, study

ARMS = {
    "full": outcome(2.0, 10),
    "memory_off": outcome(1.6, 25),
}


def test_arms_are_compared_with_the_first(tmp_path: Path) -> None:
    report = study(plan("a", "b", repeats=2), tmp_path, **ARMS)
    full, memory_off = report.arms
    assert (report.status, report.ended) == ("done", 8)
    assert full.ratio is None and full.duels is None
    assert memory_off.ratio is not None and memory_off.ratio.value == 0.8
    assert memory_off.duels is not None and memory_off.duels.losses == 4
    ratio = memory_off.candidates_to_target.ratio
    assert ratio is not None and ratio.value == 2.5


def test_markdown_tells_speed_cost_and_how_the_intervals_came_about(tmp_path: Path) -> None:
    text = study_markdown(study(plan("a", "b"), tmp_path, **ARMS))
    assert (
        "- memory\\_off: 0.80 (0.80 to 0.80) times the speed of full (estimated);"
        " 2.50 (2.50 to 2.50) times its candidates and 2.50 (2.50 to 2.50) times its tokens per"
        " run that reached the target." in text
    )
    assert (
        "| memory\\_off | 2 | 1.600x (1.600x to 1.600x) | 0.800 (0.800 to 0.800) | 0, 2, 0 |"
        in text
    )
    assert "pigeonhole bootstrap" in text and "measured" not in text.split("## How")[0]


def test_ratio_that_may_be_one_is_said_to_be_no_sure_difference(tmp_path: Path) -> None:
    report = study(plan("a", "b"), tmp_path, **ARMS)
    full, other = report.arms
    assert other.ratio is not None
    for interval, told in (((0.7, 1.1), True), ((0.7, None), True), ((0.7, 0.9), False)):
        ratio = other.ratio.model_copy(update={"interval": interval})
        arms = (full, other.model_copy(update={"ratio": ratio}))
        (line,) = headlines(report.model_copy(update={"arms": arms}))
        assert ("no sure difference" in line) == told


def test_study_under_way_says_of_how_many_runs_its_figures_are(tmp_path: Path) -> None:
    report = study(plan("a", "b"), tmp_path, full=outcome(2.0), memory_off=None)
    text = study_markdown(report)
    assert report.status == "paused"
    assert "2 of 4 runs have ended; the figures are of these." in text
    assert "-memory\\_off-r0-k0 | memory\\_off | 1 | a | not\\_begun |" in text


def test_single_run_has_figures_and_no_interval(tmp_path: Path) -> None:
    text = study_markdown(study(plan("a"), tmp_path, **ARMS))
    assert "1.600x (no interval)" in text


def test_arm_that_never_reaches_the_target_is_said_to(tmp_path: Path) -> None:
    report = study(plan("a", "b"), tmp_path, full=outcome(2.0), memory_off=outcome(1.1, 9, "never"))
    text = study_markdown(report)
    assert "no run reached the target, of 2" in text and "over half do not reach it" in text
    back = study(plan("a", "b"), tmp_path, full=outcome(1.1, 9, "cut"), memory_off=outcome(2.0))
    assert "2 of 2 runs reached the target, none of full did" in study_markdown(back)
    assert "0 of 2 (2 cut by budget)" in study_markdown(back)


def test_page_holds_the_whole_report_and_loads_nothing(tmp_path: Path) -> None:
    report = study(plan("a", "b"), tmp_path, **ARMS)
    page = study_page(report)
    data = page.split('id="study">')[1].split("</script>")[0]
    assert json.loads(data) == json.loads(report.model_dump_json(by_alias=True))
    assert "http" not in page.replace("http-equiv", "") and page.count("<script") == 1


def test_charts_have_a_mark_for_every_run_and_for_every_place(tmp_path: Path) -> None:
    report = study(plan("a", "b"), tmp_path, full=outcome(2.0), memory_off=outcome(1.1, 9, "never"))
    speeds, places = (ElementTree.fromstring(one(report)) for one in (arm_chart, place_chart))
    kinds = [one.get("class") for one in speeds if one.find("title") is not None]
    assert sorted(map(str, kinds)) == ["kept"] * 2 + ["passed"] * 4
    kinds = [one.get("class") for one in places if one.find("title") is not None]
    assert sorted(map(str, kinds)) == ["failed"] * 2 + ["passed"] * 2


def test_both_files_lie_in_the_folder_of_the_study(tmp_path: Path) -> None:
    page, markdown = write_study(study(plan("a"), tmp_path, **ARMS))
    assert (page, markdown) == (tmp_path / "study.html", tmp_path / "study.md")
    assert page.stat().st_size > 1000 and markdown.stat().st_size > 1000
