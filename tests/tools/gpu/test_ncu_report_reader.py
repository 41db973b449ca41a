"""Counters are read through NVIDIA's library; what a report lacks stays None.

The library here is a stand-in with the calls of the real one (tests/support/scripted_report.py).
"""

import builtins
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kopt.tools.cuda.compiler_log import CANDIDATE_FILE
from kopt.tools.profiling.ncu_report import ReportError, read_report
from support.scripted_report import (
    FIRST_METRICS,
    SAMPLES,
    Action,
    Metric,
    SourceInfo,
    scripted_library,
)

REPORT = Path("made_up.ncu-rep")
FIRST = Action(
    "first",
    {name: Metric(value) for name, value in FIRST_METRICS.items()}
    | {name: Metric(sum(counts.values()), counts=counts) for name, counts in SAMPLES.items()},
    {
        112: SourceInfo(f"/build/{CANDIDATE_FILE}", 3),
        256: SourceInfo(f"/build/{CANDIDATE_FILE}", 4),
        272: SourceInfo(f"/build/{CANDIDATE_FILE}", 5),
        288: SourceInfo("/usr/include/cuda_bf16.hpp", 6),
    },
)
SECOND = Action(
    "second",
    {
        "gpu__time_duration.sum": Metric(1.2, "us"),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": Metric(0.5),
        "dram__bytes_read.sum": Metric(5.0, "furlong"),
        "dram__bytes_write.sum": Metric(None),
    },
)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, FIRST, SECOND)


def _install(monkeypatch: pytest.MonkeyPatch, *actions: Action) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", scripted_library(*actions))


@pytest.mark.usefixtures("library")
def test_metrics_become_bytes_microseconds_and_shares() -> None:
    first = read_report(REPORT)[0]
    assert first.kernel == "first"
    assert first.time_us == pytest.approx(3.456)
    assert (first.dram_read_bytes, first.dram_written_bytes) == (1572864, 16384)
    assert first.memory_fraction == pytest.approx(0.41)
    assert first.l2_hit_fraction == pytest.approx(0.475)
    assert first.issue_fraction == pytest.approx(0.125)
    assert (first.instructions, first.bank_conflicts) == (123456, 7)


@pytest.mark.usefixtures("library")
def test_limits_that_tie_both_limit() -> None:
    assert read_report(REPORT)[0].occupancy_limiters == ("registers", "shared_memory")


@pytest.mark.usefixtures("library")
def test_stalls_are_shares_of_all_warp_cycles_without_those_at_work() -> None:
    stalls = read_report(REPORT)[0].stalls
    assert [stall.reason for stall in stalls] == ["long_scoreboard", "barrier", "wait"]
    assert [stall.fraction for stall in stalls] == pytest.approx([0.6, 0.2, 0.1])


@pytest.mark.usefixtures("library")
def test_samples_are_gathered_by_line_of_the_candidate() -> None:
    lines = read_report(REPORT)[0].stall_lines
    assert [(line.line, line.reason, line.samples) for line in lines] == [
        (4, "long_scoreboard", 50),
        (5, "barrier", 28),
        (3, "long_scoreboard", 2),
    ]
    assert sum(line.fraction for line in lines) == pytest.approx(1.0)


@pytest.mark.usefixtures("library")
def test_metrics_that_are_missing_are_none() -> None:
    second = read_report(REPORT)[1]
    assert second.kernel == "second"
    assert second.time_us == pytest.approx(1.2)
    assert (second.dram_read_bytes, second.dram_written_bytes) == (None, None)
    assert (second.memory_fraction, second.issue_fraction) == (None, None)
    assert (second.stalls, second.stall_lines, second.occupancy_limiters) == ((), (), ())


def test_report_without_launches_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch)
    with pytest.raises(ReportError, match="holds no kernels"):
        read_report(REPORT)


def test_report_that_the_library_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise RuntimeError(f"{path} is no report")

    stand_in = ModuleType("ncu_report")
    vars(stand_in)["load_report"] = refuse
    monkeypatch.setitem(sys.modules, "ncu_report", stand_in)
    with pytest.raises(ReportError, match="cannot read"):
        read_report(REPORT)


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise builtins.ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(ReportError, match="pip install"):
        read_report(REPORT)
