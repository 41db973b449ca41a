"""What is said about a run, and how it is exported."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.status import Provenance, Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.reports.charts import candidate_chart
from kopt.search.reports.contents import read_contents
from kopt.search.reports.files import export_lines
from kopt.search.reports.page import render_page
from kopt.search.reports.run_list import list_runs
from kopt.search.reports.run_report import report_run, view_run
from kopt.search.rounds.advance import run_search
from support.populations import failed, passed
from support.scripted_runs import new_store, search


def _finished(home: Path, run_id: str = "run-1") -> None:
    with new_store(home, run_id) as store:
        run_search(search(store))


def test_report_names_winner_its_file_and_the_provenance_of_its_time(tmp_path: Path) -> None:
    _finished(tmp_path)
    with view_run("run-1", Settings(tmp_path)) as (reader, folder):
        report = report_run(reader, folder)
    assert report.status == "done"
    assert report.winner_tune == {"BLOCK": 256, "ROWS": 2}
    assert report.winner_path is not None and Path(report.winner_path).is_file()
    assert (report.start_latency_us, report.best_latency_us, report.ratio) == (6.0, 1.0, 6.0)
    assert report.provenance is Provenance.ESTIMATED
    assert {entry.status for entry in report.population} == {Status.PASSED, Status.INCORRECT}


def test_candidate_without_a_latency_has_none_and_not_zero(tmp_path: Path) -> None:
    _finished(tmp_path)
    with view_run("run-1", Settings(tmp_path)) as (reader, folder):
        wrong = [e for e in report_run(reader, folder).population if e.status != Status.PASSED]
    assert [(e.latency_us, e.provenance) for e in wrong] == [(None, Provenance.UNAVAILABLE)]


def test_same_program_is_named_by_its_first_candidate(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        return passed(float(job.tune["BLOCK"]), equivalence=f"block {job.tune['BLOCK']}")

    with new_store(tmp_path) as store:
        run_search(search(store, answer))
        report = report_run(store.reader, store.folder)
    assert len(report.ranking) == 3
    assert report.population[0].same_program_as is None
    assert (
        sum(entry.same_program_as is not None for entry in report.population)
        == len(report.population) - 3
    )


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    for run_id in ("run-20260101-000000-000", "run-20260102-000000-000"):
        _finished(tmp_path, run_id)
    assert [run.run[4:12] for run in list_runs(Settings(tmp_path)).runs] == ["20260102", "20260101"]


def test_run_whose_process_died_is_called_interrupted(tmp_path: Path) -> None:
    with new_store(tmp_path):
        assert [run.status for run in list_runs(Settings(tmp_path)).runs] == ["running"]
    assert [run.status for run in list_runs(Settings(tmp_path)).runs] == ["interrupted"]


def test_folder_of_a_run_that_never_began_hides_nothing(tmp_path: Path) -> None:
    _finished(tmp_path)
    (tmp_path / "runs" / "run-2").mkdir()
    (tmp_path / "runs" / "run-2" / "run.sqlite").touch()
    assert [run.run for run in list_runs(Settings(tmp_path)).runs] == ["run-1"]
    with (
        pytest.raises(ToolError, match="killed before it began"),
        view_run("run-2", Settings(tmp_path)),
    ):
        pass


@pytest.mark.parametrize("text", ["nothing", "", "run-"])
def test_run_that_is_not_unmistakable_is_refused_with_what_there_is(
    tmp_path: Path, text: str
) -> None:
    for run_id in ("run-1", "run-2"):
        _finished(tmp_path, run_id)
    with pytest.raises(ToolError, match="run-2, run-1"), view_run(text, Settings(tmp_path)):
        pass


def test_export_has_every_source_row_and_event(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        lines = [json.loads(line) for line in export_lines(store.reader, store.folder)]
        events = len(store.reader.events())
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "run" and lines[0]["schema"] == "kopt.run-export/1"
    assert kinds.count("source") == 1
    assert kinds.count("candidate") == 9 and kinds.count("evaluation") == 10
    assert kinds.count("event") == events


def test_page_says_that_times_are_estimated_and_never_faster(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        page = render_page(read_contents(store.reader, store.folder, Settings(tmp_path)))
    assert "1.000 us; the start 6.000 us: 6.00 times by estimated time." in page
    assert "times the speed of the start, estimated</figcaption>" in page
    assert "faster" not in page and "us measured" not in page


def test_chart_marks_every_candidate_and_who_was_kept(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        report = report_run(store.reader, store.folder)
    chart = ElementTree.fromstring(candidate_chart(report))
    kinds = [element.get("class", "") for element in chart if element.find("title") is not None]
    assert sorted(kinds) == ["failed", "kept", *["passed"] * 6, "winner"]


def test_page_of_a_run_without_any_passed_candidate_says_so(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store, lambda _: failed()))
        page = render_page(read_contents(store.reader, store.folder, Settings(tmp_path)))
    assert "failed: no candidate has passed the full check." in page
    assert 'class="passed"' not in page and 'class="failed"' in page
