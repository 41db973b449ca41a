"""Where candidates stand under the roofline of their GPU."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kopt.config.settings import Settings
from kopt.search.reports.charts import roofline_chart
from kopt.search.reports.contents import Contents, read_contents
from kopt.search.reports.page import render_page
from support.told_run import told_run


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """Return a run of a kernel that there is."""
    home = tmp_path_factory.mktemp("home")
    with told_run(home, kernel="silu_and_mul_b8xh14336") as store:
        return read_contents(store.reader, store.folder, Settings(home))


def test_faster_candidates_stand_higher_and_all_below_the_roof(contents: Contents) -> None:
    assert contents.roof is not None and contents.roof.line.gpu == "H100"
    chart = roofline_chart(contents.report, contents.roof.model, contents.roof.line)
    root = ElementTree.fromstring(chart or "")
    marks = {
        (mark.findtext("title") or "").split()[0]: float(mark.get("cy", "nan"))
        for mark in root
        if mark.tag == "circle"
    }
    assert marks["#4"] < marks["#1"] < marks["#3"] < marks["#0"]
    roof = next(e for e in root if e.get("class") == "roof").get("points", "")
    highest = min(float(point.split(",")[1]) for point in roof.split())
    assert highest < marks["#4"]


def test_a_plain_copy_is_a_line_at_the_height_of_its_time(contents: Contents) -> None:
    assert contents.roof is not None
    assert "a plain copy" not in (
        roofline_chart(contents.report, contents.roof.model, contents.roof.line) or ""
    )
    start_us = contents.report.population[0].latency_us
    report = contents.report.model_copy(update={"plain_copy_us": start_us})
    chart = roofline_chart(report, contents.roof.model, contents.roof.line)
    root = ElementTree.fromstring(chart or "")
    (place,) = (
        float(mark.get("cy", "nan"))
        for mark in root
        if mark.tag == "circle" and (mark.findtext("title") or "").startswith("#0 ")
    )
    heights = [float(one.get("y1", "nan")) for one in root if one.get("class") == "even"]
    assert any(height == pytest.approx(place) for height in heights)
    assert "a plain copy's time, measured" in [one.text for one in root]


def test_page_names_the_floor_with_its_provenance(contents: Contents) -> None:
    assert "688,128 bytes and 573,440 operations a call, computed" in render_page(contents)


def test_definition_without_operations_has_no_roofline(contents: Contents) -> None:
    assert contents.roof is not None
    model = contents.roof.model.model_copy(update={"flop": 0})
    assert roofline_chart(contents.report, model, contents.roof.line) is None


def test_gpu_without_a_data_sheet_has_no_roofline_and_the_page_says_so(tmp_path: Path) -> None:
    with told_run(tmp_path, kernel="silu_and_mul_b8xh14336") as store:
        contents = read_contents(store.reader, store.folder, Settings(tmp_path))
    roofless = replace(contents, roof=None, roof_missing="no data sheet describes GPU X")
    assert "Unavailable: no data sheet describes GPU X" in render_page(roofless)
