"""The HTML report of a run: what it shows, and that nothing in it can load or run."""

import json
import sqlite3
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kopt.config.settings import Settings
from kopt.search.reports.charts import candidate_chart, tree_chart
from kopt.search.reports.contents import Contents, read_contents
from kopt.search.reports.page import render_page
from kopt.search.reports.run_report import view_run
from kopt.search.reports.sections import round_table
from kopt.search.store.store import FILE_NAME
from support.scripted_runs import new_store
from support.told_run import told_run

HOSTILE = '</script><script>alert(1)</script><img src="//x"> & <!--'


class _Page(HTMLParser):
    """Collects what could load or run anything."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def _contents(home: Path, words: str = "wider loads") -> Contents:
    with told_run(home, words) as store:
        return read_contents(store.reader, store.folder, Settings(home))


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """Return what the pages of the told run show."""
    return _contents(tmp_path_factory.mktemp("home"))


def test_page_can_neither_load_nor_run_anything_whatever_candidates_and_models_say(
    tmp_path: Path,
) -> None:
    text = render_page(_contents(tmp_path, HOSTILE))
    page = _Page(text)
    assert page.tags.count("script") == 1 and ("type", "application/json") in page.attributes
    assert not {"img", "link", "iframe", "object", "base", "form"} & set(page.tags)
    policies = [value for name, value in page.attributes if name == "content"]
    assert (policies[0] or "").startswith("default-src 'none'; style-src 'sha256-")
    names = {name for name, _ in page.attributes}
    assert not {"style", "src"} & names
    assert all((value or "").startswith("#") for name, value in page.attributes if name == "href")
    assert not [name for name in names if name.startswith("on")]
    assert "http" not in text.replace("http-equiv", "")


def test_page_holds_nothing_that_a_terminal_obeys_or_that_turns_text(tmp_path: Path) -> None:
    words = "a\x1b[31m\x00 b\u202e c\u2066 d"
    contents = _contents(tmp_path, words)
    source = f"// {words}\n\tint x;\n"
    page = render_page(replace(contents, winner_source=source))
    assert not {letter for letter in page if not letter.isprintable()} - {"\n", "\t"}
    assert "\n\tint x;\n" in page


def test_page_holds_the_whole_report_as_json(tmp_path: Path) -> None:
    contents = _contents(tmp_path, HOSTILE)
    text = render_page(contents).split('id="run">')[1].split("</script>")[0]
    assert json.loads(text) == json.loads(contents.report.model_dump_json(by_alias=True))


def test_page_tells_outcome_rounds_cost_and_the_change_from_the_start(contents: Contents) -> None:
    page = render_page(contents)
    assert "Candidate 4 passed the full check" in page
    assert "1.380 times the speed of flashinfer (PDL on) (1.375 to 1.385)" in page
    assert "6 calls, 5,600 tokens, $0.0500 computed" in page
    assert "<td>coder-model</td><td>3 (1 failed)</td>" in page
    assert "Changes from the start" in page
    assert "<td>r1/b2</td><td>new-3</td>" in page and "<li>Round 1: wider loads</li>" in page
    assert "estimated" not in page


def test_missing_problem_makes_the_roofline_unavailable_and_says_why(contents: Contents) -> None:
    page = render_page(contents)
    assert "Unavailable: no kernel is called &#39;made_up_b8&#39;" in page


def test_every_chart_is_well_formed_with_a_label_and_a_mark_for_each_candidate(
    contents: Contents,
) -> None:
    report = contents.report
    for chart in (candidate_chart(report), tree_chart(report)):
        root = ElementTree.fromstring(chart)
        assert root.get("role") == "img" and root.get("aria-label")
        kinds = [element.get("class", "") for element in root if element.find("title") is not None]
        assert sorted(kinds) == ["failed", "kept", "passed", "passed", "winner"]


def test_rounds_have_their_best_with_its_interval(contents: Contents) -> None:
    told = [row[3] for row in round_table(contents.report).rows]
    assert told == [
        "#0 1.000x (0.995 to 1.005)",
        "#1 1.200x (1.195 to 1.205)",
        "#4 1.400x (1.395 to 1.405)",
    ]


def test_charts_have_a_size_of_their_own_so_that_text_is_as_large_in_all(
    contents: Contents,
) -> None:
    for chart in (candidate_chart(contents.report), tree_chart(contents.report)):
        root = ElementTree.fromstring(chart)
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_tree_draws_the_way_to_the_winner_strong(contents: Contents) -> None:
    root = ElementTree.fromstring(tree_chart(contents.report))
    kinds = [element.get("class") for element in root if element.tag == "line"]
    assert (kinds.count("chosen"), kinds.count("edge")) == (2, 2)


def test_run_that_has_just_begun_has_a_page(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        page = render_page(read_contents(store.reader, store.folder, Settings(tmp_path)))
    assert "running: no candidate has passed the full check." in page
    assert "No model was asked" in page


def test_run_of_an_older_kopt_has_a_page_too(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    file = sqlite3.connect(tmp_path / "runs" / "run-1" / FILE_NAME, isolation_level=None)
    for table in ("llm_call", "branch", "round"):
        file.execute(f"DROP TABLE {table}")
    file.execute("PRAGMA user_version = 2")
    file.close()
    with view_run("run-1", Settings(tmp_path)) as (reader, folder):
        page = render_page(read_contents(reader, folder, Settings(tmp_path)))
    assert "Candidate 4 passed the full check" in page and "No model was asked" in page
