"""Reports are read in a process of their own: what its native library does there ends no profile.

The library is a stand-in, as a module on the import path.
"""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.profiling.ncu_report import ReportError
from kopt.tools.profiling.report_process import read_report_apart

READS = """
from support.scripted_report import Action, Metric, scripted_library
action = Action("silu", {"gpu__time_duration.sum": Metric(1.2, "us")}, {})
load_report = scripted_library(action).load_report
"""
CRASHES = """
import os, signal
def load_report(path):
    os.kill(os.getpid(), signal.SIGSEGV)
"""
REFUSES = """
def load_report(path):
    raise RuntimeError("no report")
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "counters.ncu-rep"
    path.write_bytes(b"what ncu would write")
    return path


def _install(text: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / "ncu_report.py").write_text(text)
    patch.syspath_prepend(str(folder))  # pyright: ignore[reportUnknownMemberType]


def test_what_the_process_reads_comes_back_whole(
    report: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(READS, tmp_path / "library", monkeypatch)
    (launch,) = read_report_apart(report, settings)
    assert (launch.kernel, launch.time_us) == ("silu", 1.2)


def test_a_crash_of_the_library_is_said_and_survived(
    report: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(CRASHES, tmp_path / "library", monkeypatch)
    with pytest.raises(ReportError, match="ended with -11"):
        read_report_apart(report, settings)


def test_what_the_library_refuses_is_said_as_it_says_it(
    report: Path, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(REFUSES, tmp_path / "library", monkeypatch)
    with pytest.raises(ReportError, match="no report"):
        read_report_apart(report, settings)
