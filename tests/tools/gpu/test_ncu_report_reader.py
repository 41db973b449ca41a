"""Counters are read from a report by NVIDIA's own library; what a report lacks stays None.

The report was made by hand in Nsight Compute's format: its numbers are made up, its cubin and line
table are real. ncu-report is part of the `gpu` extra, so that these tests may be skipped.
"""

import builtins
import importlib
from pathlib import Path
from types import ModuleType

import pytest

from kopt.tools.gpu.ncu_report_reader import ReportError, read_report

REPORT = Path(__file__).parents[2] / "samples" / "reports" / "made_up.ncu-rep"


@pytest.fixture
def library() -> None:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed")


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
    assert (second.dram_read_bytes, second.memory_fraction, second.issue_fraction) == (None,) * 3
    assert (second.stalls, second.stall_lines, second.occupancy_limiters) == ((), (), ())


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("content", [b"", b"no report", REPORT.read_bytes()[:40]])
def test_file_without_launches_is_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(ReportError, match=r"holds no kernels|cannot read"):
        read_report(path)


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise builtins.ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(ReportError, match="pip install"):
        read_report(REPORT)
