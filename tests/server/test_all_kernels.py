"""A run of every kernel: one that fails does not end the others."""

from pathlib import Path

import pytest

from kopt.config.errors import BackendUnavailable, InfraError, KoptError, SetupError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.search.reports.next_steps import resuming
from kopt.search.reports.run_report import RunReport, report_run
from kopt.search.rounds.advance import run_search
from kopt.server.all_runs import all_runs_view, run_all
from kopt.server.exits import ExitCode, Interrupted
from kopt.server.session import print_view
from support.scripted_runs import new_store, search


@pytest.fixture
def report(tmp_path: Path) -> RunReport:
    """Return the report of a run with a winner."""
    with new_store(tmp_path) as store:
        run_search(search(store))
        return report_run(store.reader, store.folder)


def _kernels(settings: Settings) -> list[str]:
    problems = load_problems(settings.problems).values()
    return [kernel for problem in problems for kernel in problem.kernel_ids]


def test_every_kernel_gets_a_run_whatever_becomes_of_the_others(
    tmp_path: Path, report: RunReport, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(tmp_path)
    every = _kernels(settings)
    asked: list[str] = []

    def run(kernel: str) -> RunReport:
        asked.append(kernel)
        if kernel == every[1]:
            raise InfraError("the GPU was reset (run-1 is paused)")
        return report.model_copy(update={"kernel": kernel})

    found = run_all(every, run)
    assert asked == every
    assert [one.kernel for one in found.runs] == [every[0], *every[2:]]
    assert [(one.kernel, one.problem) for one in found.failed] == [
        (every[1], "the GPU was reset (run-1 is paused)")
    ]
    assert (found.status, found.exit_code) == ("failed", ExitCode.MACHINE)
    assert every[1] in capsys.readouterr().err


@pytest.mark.parametrize(
    "fault",
    [
        SetupError("the service does not take the key"),
        BackendUnavailable("the service cannot be reached"),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_what_one_kernel_lacks_no_other_is_begun_without(
    tmp_path: Path, report: RunReport, capsys: pytest.CaptureFixture[str], fault: KoptError
) -> None:
    settings = Settings(tmp_path)
    every = _kernels(settings)

    def run(kernel: str) -> RunReport:
        if kernel == every[1]:
            raise fault
        return report

    found = run_all(every, run)
    assert len(found.runs) == len(found.failed) == 1
    assert found.not_begun == tuple(every[2:])
    assert found.exit_code == ExitCode.MACHINE
    print_view(all_runs_view(found))
    assert f"{len(every) - 2} more kernels were not begun" in capsys.readouterr().out


def test_ctrl_c_shows_what_was_done_and_how_to_go_on(
    tmp_path: Path, report: RunReport, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(tmp_path)
    every = _kernels(settings)

    def run(kernel: str) -> RunReport:
        if kernel == every[1]:
            raise Interrupted("interrupted; run-2 is paused", resuming("run-2", None))
        return report

    found = run_all(every, run)
    assert (found.status, found.exit_code) == ("interrupted", ExitCode.INTERRUPTED)
    assert found.not_begun == tuple(every[2:])
    print_view(all_runs_view(found))
    shown = " ".join(capsys.readouterr().out.split())
    assert report.run in shown
    assert "kopt run --resume run-2" in shown
    assert f"{len(every) - 2} more kernels were not begun: kopt run --kernel ID" in shown


def test_run_without_a_winner_falls_short(tmp_path: Path, report: RunReport) -> None:
    loser = report.model_copy(update={"winner": None})
    every = _kernels(Settings(tmp_path))
    found = run_all(every, lambda kernel: loser if kernel == every[0] else report)
    assert (found.status, found.exit_code) == ("failed", ExitCode.FELL_SHORT)


def test_winner_for_every_kernel_passes(tmp_path: Path, report: RunReport) -> None:
    found = run_all(_kernels(Settings(tmp_path)), lambda _: report)
    assert (found.status, found.exit_code) == ("done", ExitCode.PASSED)
