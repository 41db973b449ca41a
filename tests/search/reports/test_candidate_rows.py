"""The candidates of a report: their order, their code, what to do next."""

from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import escape

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.search.records.budget import parse_budget
from kopt.search.reports.candidate_code import candidate_code
from kopt.search.reports.candidate_rows import candidate_rows, candidate_table
from kopt.search.reports.contents import Contents, read_contents
from kopt.search.reports.next_steps import next_commands
from kopt.search.reports.page import render_page
from kopt.search.reports.run_report import RunReport
from support.told_run import told_run


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """Return what the pages of the told run show."""
    home = tmp_path_factory.mktemp("home")
    with told_run(home) as store:
        return read_contents(store.reader, store.folder, Settings(home))


def _with(report: RunReport, seq: int, **fields: object) -> RunReport:
    changed = [
        entry.model_copy(update=fields) if entry.seq == seq else entry
        for entry in report.population
    ]
    return report.model_copy(update={"population": tuple(changed)})


def test_best_come_first_and_those_that_did_not_pass_last(contents: Contents) -> None:
    rows = candidate_rows(contents.report).rows
    assert [row.entry.seq for row in rows] == [4, 1, 3, 0, 2]
    assert [row.kind for row in rows] == ["best", "", "", "", "failed"]


def test_same_program_stands_below_the_one_that_is_ranked_for_it(contents: Contents) -> None:
    # As if #1 were the program of #4, which leads: not in the ranking any more.
    report = _with(contents.report, 4, same_program_as=1)
    report = report.model_copy(update={"ranking": (4, 3, 0)})
    found = candidate_rows(report)
    assert [row.entry.seq for row in found.rows] == [4, 1, 3, 0, 2]
    assert "same program" in found.caption and found.rows[0].remark.startswith("same program as #1")


def test_heads_are_short_and_columns_without_content_are_left_out(contents: Contents) -> None:
    table = candidate_table(contents.report)
    assert max(len(head) for head in table.heads) <= len("Registers#")
    assert "Verdict" not in table.heads and "Tune" in table.heads
    assert table.caption.startswith("Speed: speedup over flashinfer (PDL on), measured. Time: us")
    assert {len(row) for row in table.rows} == {len(table.heads)}


def test_run_without_candidates_has_all_heads_and_no_row(contents: Contents) -> None:
    empty = contents.report.model_copy(update={"population": (), "ranking": (), "winner": None})
    assert (candidate_rows(empty).rows, len(candidate_rows(empty).heads)) == ((), 10)


def test_full_check_that_failed_is_told_beside_the_quick_one(contents: Contents) -> None:
    fell = {"full_status": Status.INCORRECT, "full_summary": "off by 3"}
    rows = candidate_rows(_with(contents.report, 1, **fell)).rows
    row = next(row for row in rows if row.entry.seq == 1)
    assert "passed; full check: incorrect" in row.cells and "off by 3" in row.remark


def test_every_candidate_has_its_source_and_what_it_changes_of_its_parent(
    contents: Contents,
) -> None:
    page = render_page(contents)
    for seq in range(5):
        assert f"<summary>Code of #{seq}" in page
    fix = candidate_code(contents, 3)
    assert fix.parent == 2 and [(line.kind, line.text) for line in fix.changes if line.kind] == [
        ("b", "--- #2"),
        ("b", "+++ #3"),
        ("b", fix.changes[2].text),
        ("del", "-// r1/b1 0"),
        ("ins", "+// r1/b1 1"),
    ]
    assert "<ins>+// r1/b1 1</ins>" in page and "<h3>Changes from #2</h3>" in page


def test_tune_choice_of_one_source_names_what_differs_and_shows_the_source_once(
    contents: Contents,
) -> None:
    first = contents.report.population[1]
    report = _with(contents.report, 4, candidate=first.candidate, tune={"BLOCK": 512})
    report = _with(report, 1, tune={"BLOCK": 256})
    sources = (*contents.sources[:4], contents.sources[1])
    same = replace(contents, report=report, sources=sources)
    code = candidate_code(same, 4)
    assert (code.changes, code.tune_changes, code.source_of) == ((), "BLOCK 256 to 512", 1)
    page = render_page(same)
    assert 'Its source is that of <a href="#candidate-1">#1</a>' in page
    assert "<summary>Source of #4</summary>" not in page


def _commands(report: RunReport, **fields: object) -> list[str]:
    return [one.shell for one in next_commands(report.model_copy(update=fields))]


def test_next_commands_name_the_winner_the_kernel_and_the_device(contents: Contents) -> None:
    found = _commands(contents.report, winner_path="/a folder/winner.cu")
    assert found[0] == (
        "kopt bench '/a folder/winner.cu' --kernel made_up_b8 --device cuda:0 --promote"
    )
    assert "kopt export run-1/4 --as cuda" in found


def test_estimated_winner_is_to_be_measured(contents: Contents) -> None:
    found = _commands(contents.report, gpu=None, device="sim", winner_path="/w.cu")
    assert found[0] == "kopt bench /w.cu --kernel made_up_b8"
    assert "kopt profile /w.cu --kernel made_up_b8 --device sim --arch sm_90a" in found


@pytest.mark.parametrize("status", ["paused", "interrupted"])
def test_run_that_stands_still_can_be_gone_on_with(contents: Contents, status: str) -> None:
    assert _commands(contents.report, status=status, winner=None, winner_path=None) == [
        "kopt run --resume run-1"
    ]


def test_run_that_has_spent_its_budget_is_offered_twice_as_much(contents: Contents) -> None:
    found = _commands(contents.report, status="budget", winner=None, winner_path=None)
    assert found[0] == "kopt run --resume run-1 --budget 10usd"


@pytest.mark.parametrize("text", ["50", "90s", "$5", "400ktok", "gpu:10m", "50,2h,$2.5"])
def test_budget_is_written_as_the_command_line_reads_it(text: str) -> None:
    budget = parse_budget(text)
    assert parse_budget(budget.written) == budget
    assert parse_budget(budget.doubled().written).covers(budget)


def test_commands_for_a_problem_of_the_users_own_name_its_folder(contents: Contents) -> None:
    mine = {"problems": "/my problems", "winner_path": "/w.cu"}
    found = _commands(contents.report, **mine)
    assert len(found) > 3 and all(one.endswith(" --problems '/my problems'") for one in found)
    assert f"<pre>{escape(found[0])}</pre>" in render_page(
        replace(contents, report=contents.report.model_copy(update=mine))
    )


def test_running_run_is_only_looked_at(contents: Contents) -> None:
    running = {"status": "running", "winner": None, "winner_path": None}
    found = _commands(contents.report, **running)
    assert found == ["kopt view run-1", "kopt runs show run-1"]


def test_page_shows_the_commands_whole(tmp_path: Path, contents: Contents) -> None:
    page = render_page(contents)
    for one in next_commands(contents.report):
        assert f"<pre>{one.shell}</pre>" in page
