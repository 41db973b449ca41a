"""A run's winner and the best known kernel beside it, in words that claim no more than is known."""

import pytest

from kopt.kernels.best_known import BestKnown, MeasuredWinner
from kopt.search.reports.run_report import RunReport, report_run
from kopt.search.rounds.advance import run_search
from kopt.server.session import print_view
from kopt.server.views.run_view import run_view
from support.scripted_runs import new_store, search

MEASURED = MeasuredWinner(latency_us=1.407, gpu="NVIDIA H100", speedup=3.5, baseline="flashinfer")
KNOWN = BestKnown(standing="winner", arch="sm_90a", source="w.cu", measured=None, estimated_us=None)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    """Return the report of a run with a winner."""
    with new_store(tmp_path_factory.mktemp("run")) as store:
        run_search(search(store))
        return report_run(store.reader, store.folder)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.5, "2.00x the speed of this winner"),
        (1.001, "as fast as this winner"),
        (2.0, "this winner has 2.00x its speed"),
    ],
)
def test_two_estimates_are_compared(
    report: RunReport, capsys: pytest.CaptureFixture[str], share: float, said: str
) -> None:
    assert report.best_latency_us is not None
    known = KNOWN.model_copy(update={"estimated_us": share * report.best_latency_us})
    print_view(run_view(report.model_copy(update={"best_known": known})))
    shown = capsys.readouterr().out
    assert f"us estimated{'; ' if share == 2.0 else ', '}{said}" in shown
    assert "a kernel that comes with kopt, winner for sm_90a: w.cu" in shown


def test_a_time_of_another_session_is_named_with_its_gpu_and_not_compared(
    report: RunReport, capsys: pytest.CaptureFixture[str]
) -> None:
    known = KNOWN.model_copy(update={"measured": MEASURED})
    print_view(run_view(report.model_copy(update={"best_known": known})))
    shown = capsys.readouterr().out
    assert "Best known: 1.407 us measured on NVIDIA H100, 3.500x flashinfer" in shown
    assert "this winner" not in shown.partition("Best known")[2]


def test_a_run_that_knows_no_other_kernel_says_nothing_of_one(
    report: RunReport, capsys: pytest.CaptureFixture[str]
) -> None:
    print_view(run_view(report))
    assert "Best known" not in capsys.readouterr().out
