"""The Markdown report of a run."""

from pathlib import Path

from kopt.config.settings import Settings
from kopt.search.reports.contents import read_contents
from kopt.search.reports.files import write_reports
from kopt.search.reports.markdown import render_markdown
from support.told_run import told_run


def _markdown(home: Path, words: str = "wider loads") -> str:
    with told_run(home, words) as store:
        return render_markdown(read_contents(store.reader, store.folder, Settings(home)))


def test_report_tells_outcome_rounds_candidates_and_cost(tmp_path: Path) -> None:
    text = _markdown(tmp_path)
    assert "1.380 times the speed of flashinfer (PDL on) (1.375 to 1.385)" in text
    assert "| 1 | agents | 2 of 3 | \\#1 1.200x (1.195 to 1.205) | \\#1 \\#3 | 0.0500 |" in text
    assert "| \\#4 r2b0 winner | 1.400x (1.395 to 1.405) | 7.143 | passed (full check) |" in text
    assert "| fixer | fixer-model | 1 | 100 | 0 | 800 | 200 | 2.0 | 0.0100 |" in text
    assert "- Round 1: wider loads" in text
    assert "| r1/b2 | new-3 | vectorization | wider loads | wider loads |" in text


def test_nothing_that_a_model_says_becomes_markup(tmp_path: Path) -> None:
    text = _markdown(tmp_path, "![x](//y) <img>\n\n# head | cell `code` \x1b[31m [a]: b")
    assert "\x1b" not in text and "![" not in text and "\n# head" not in text
    assert "\\!\\[x\\](//y) \\<img\\> \\# head \\| cell \\`code\\`" in text


def test_nothing_that_a_model_says_becomes_a_link_or_notifies_anybody(tmp_path: Path) -> None:
    text = _markdown(tmp_path, "see https://evil.example or WWW.evil.example, ask @somebody")
    assert "https:<!-- -->//evil.example or WWW<!-- -->.evil.example" in text
    assert "ask @<!-- -->somebody" in text and "https://" not in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head(tmp_path: Path) -> None:
    width = None
    for line in _markdown(tmp_path, "a | b").splitlines():
        cells = line.replace("\\|", "").count("|")
        if not cells:
            width = None
        else:
            width = cells if width is None else width
            assert cells == width, line


def test_both_files_lie_in_the_folder_of_the_run(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        paths = write_reports(store.reader, store.folder, Settings(tmp_path))
        assert paths == (store.folder / "report.html", store.folder / "report.md")
    assert all(path.stat().st_size > 1000 for path in paths)
