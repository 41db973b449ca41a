"""Whole commands on another machine's GPU, which is a twin: the simulator with scripted times."""

import os
from pathlib import Path

import pytest

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.status import Verdict
from kopt.search.reports.run_report import RunReport
from kopt.search.step.result import StepResult
from kopt.server.exits import ExitCode
from kopt.tools.bench import plain_copy
from kopt.tools.bench.receipt_file import read_receipt
from support.bench_results import H100
from support.command_line import Kopt
from support.far_twin import far_python
from support.stand_in_ssh import StandInSsh
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # each connection starts a Python that loads kopt

DEVICE = "ssh://box/cuda:0"
KERNEL = "scale_rows_b8xh64"


@pytest.fixture
def twin(box: StandInSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInSsh:
    """Return a machine with a GPU's twin."""
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", str(far_python(tmp_path)))
    tests = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    monkeypatch.setattr(box, "python_path", path)
    box.plan()

    def nothing_kept(*_: object) -> None:
        """Find no copy that another test has timed on the same twin."""

    monkeypatch.setattr(plain_copy, "load_kept", nothing_kept)
    return box


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a tiny problem without a library."""
    return write_tiny_problem(tmp_path)


def _bench(kopt: Kopt, folder: Path) -> BenchResult:
    words = ("bench", folder / "reference.cu", "--tune", "BLOCK=256", "--device", DEVICE, "--json")
    ending = kopt(*words)
    assert ending.code == ExitCode.PASSED, ending
    return BenchResult.model_validate_json(ending.stdout)


def test_a_candidate_is_checked_and_timed_there(kopt: Kopt, twin: StandInSsh, folder: Path) -> None:
    result = _bench(kopt, folder)
    assert (result.verdict, result.comparisons[0].baseline.label) == (Verdict.FASTER, "reference")
    assert result.comparisons[0].speedup == pytest.approx(1.2, 1e-3)
    assert result.plain_copy is not None
    assert (result.device, result.gpu) == (DEVICE, H100)
    assert result.check.compiled.builds[0].arch == "sm_90a"
    assert result.timed_outputs is not None
    assert result.timed_outputs.identical == result.timed_outputs.calls > 0
    assert len(twin.connections) == 1


@pytest.mark.parametrize(
    "share",
    [0.75, *(pytest.param(share, marks=pytest.mark.nightly) for share in (0.6, 0.9))],
)
def test_a_session_that_is_lost_is_timed_again_as_a_whole(
    kopt: Kopt, twin: StandInSsh, folder: Path, share: float
) -> None:
    calm = _bench(kopt, folder)
    twin.plan(int(twin.answered_bytes * share))
    before = len(twin.connections)
    cut_off = _bench(kopt, folder)
    assert cut_off.comparisons[0].speedup == pytest.approx(calm.comparisons[0].speedup, 1e-3)
    assert cut_off.comparisons[0].pairs == calm.comparisons[0].pairs
    assert len(twin.connections) == before + 2
    twin.plan()
    _bench(kopt, folder)


def test_a_profile_is_timed_there(kopt: Kopt, twin: StandInSsh, folder: Path) -> None:
    ending = kopt("profile", folder / "reference.cu", "--device", DEVICE, "--json")
    result = ProfileResult.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert result.measured is not None
    assert (result.measured.device, result.measured.gpu) == (DEVICE, H100)
    assert result.measured.latency.median_us == pytest.approx(6.0, 1e-3)
    assert twin.connections


def test_a_winner_is_promoted_there_and_its_receipt_holds_there(
    kopt: Kopt, twin: StandInSsh, folder: Path
) -> None:
    words = (folder / "reference.cu", "--tune", "BLOCK=256", "--device", DEVICE)
    ending = kopt("bench", *words, "--promote", "--json")
    promoted = PromotionResult.model_validate_json(ending.stdout)
    assert (ending.code, promoted.outcome) == (ExitCode.PASSED, "promoted"), promoted.reasons
    receipts = [Path(file.receipt_path) for file in promoted.files]
    assert receipts
    for path in receipts:
        assert read_receipt(path).device == H100
    verified = kopt("verify", *receipts, "--device", DEVICE, "--problems", folder.parent)
    assert verified.code == ExitCode.PASSED


def test_a_run_searches_here_and_measures_there(kopt: Kopt, twin: StandInSsh, folder: Path) -> None:
    words = ("--problems", folder.parent, "--json")
    ending = kopt("run", "--kernel", KERNEL, "--device", DEVICE, *words)
    report = RunReport.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert (report.gpu, report.arch, report.baseline) == (H100, "sm_90a", "reference")
    assert report.best_speedup == pytest.approx(1.2, 1e-3)
    assert not (twin.far_home / "runs").exists()
    # A run stays on its device, without being told again.
    again = kopt("step", "--run", report.run, folder / "reference.cu", *words)
    result = StepResult.model_validate_json(again.stdout)
    assert (again.code, result.gpu) == (ExitCode.PASSED, H100)


def test_a_run_is_resumed_after_the_machine_was_away(
    kopt: Kopt, twin: StandInSsh, folder: Path
) -> None:
    words = ("--problems", folder.parent, "--json")
    twin.plan(6_000, refusal="ssh: connect to host box port 22: No route to host")
    away = kopt("run", "--kernel", KERNEL, "--device", DEVICE, *words)
    assert away.code == ExitCode.MACHINE
    assert "could not be had again in 2 tries" in away.document["message"]
    run = away.document["message"].split("--resume ")[1].split()[0].strip(")")
    twin.plan()
    ending = kopt("run", "--resume", run, *words)
    report = RunReport.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert report.best_speedup == pytest.approx(1.2, 1e-3)
