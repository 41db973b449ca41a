"""What a GPU said is shown with its source; what it did not say is a dash or a reason, never 0."""

import io

import pytest
from rich.console import Console, RenderableType

from kopt.kernels.check_result import SanitizerResult, SanitizerRun
from kopt.kernels.counters import HardwareCounters, LaunchCounters, StallLine, StallShare
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Provenance, Status
from kopt.server.views.check_view import sanitizer_lines
from kopt.server.views.profile_view import hardware_lines


def shown(*parts: RenderableType) -> str:
    """Return what stands on a wide screen."""
    screen = Console(file=io.StringIO(), width=200)
    for part in parts:
        screen.print(part)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_missing_counters_are_a_dash_and_not_zero() -> None:
    launch = LaunchCounters(kernel="k", compute_fraction=0.25)
    text = shown(
        *hardware_lines(HardwareCounters(launches=(launch,), provenance=Provenance.MEASURED))
    )
    assert "SM 25%" in text
    assert "DRAM -" in text
    assert " 0%" not in text
    assert "0 B" not in text


def test_unavailable_counters_are_one_line_with_the_reason() -> None:
    counters = HardwareCounters(provenance=Provenance.UNAVAILABLE, reason="no ncu: set KOPT_NCU")
    assert shown(*hardware_lines(counters)).splitlines() == [
        "Counters are unavailable: no ncu: set KOPT_NCU"
    ]


def test_waits_are_shown_with_their_lines() -> None:
    launch = LaunchCounters(
        kernel="k",
        stalls=(StallShare(reason="long_scoreboard", cycles_per_instruction=6.0, fraction=0.6),),
        stall_lines=(StallLine(line=42, reason="long_scoreboard", samples=9, fraction=0.5),),
    )
    counters = HardwareCounters(launches=(launch,), provenance=Provenance.MEASURED)
    text = shown(*hardware_lines(counters))
    assert "long_scoreboard 60%" in text
    assert "line 42 50%" in text


def result(*runs: SanitizerRun) -> SanitizerResult:
    """Return the result of these runs."""
    status = next((run.status for run in runs if run.status is not Status.PASSED), Status.PASSED)
    return SanitizerResult(
        status=status, kernel="k_b1", candidate="c" * 64, device="cuda:0", runs=runs, elapsed_s=1.0
    )


PASSED = SanitizerRun(tool="memcheck", outcome="passed", status=Status.PASSED, elapsed_s=0.5)


def test_finding_is_shown_with_its_line() -> None:
    finding = Diagnostic(message="racecheck: Race reported", line=41, hint="put a barrier")
    run = SanitizerRun(
        tool="racecheck",
        outcome="findings",
        status=Status.DATA_RACE,
        findings=(finding,),
        elapsed_s=0.5,
    )
    text = shown(*sanitizer_lines("mine.cu", result(PASSED, run)))
    assert "mine.cu:41: error: racecheck: Race reported" in text
    assert "racecheck data_race" in text


@pytest.mark.parametrize("outcome", ["unavailable", "timeout"])
def test_tool_that_did_not_judge_says_why(outcome: str) -> None:
    run = PASSED.model_copy(update={"outcome": outcome, "reason": "because"})
    assert f"{outcome}: because" in shown(*sanitizer_lines("mine.cu", result(run)))
