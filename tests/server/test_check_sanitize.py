"""`kopt check --sanitize`: how compute-sanitizer's findings join those of the check."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.kernels.check_result import CheckResult, SanitizerResult, SanitizerRun
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.server import opened_device
from kopt.server.exits import ExitCode
from kopt.tools import device_choice
from kopt.tools.check import stage as check_stage
from kopt.tools.sanitize import stage as sanitize_stage
from support.bench_results import KERNEL, check
from support.command_line import Kopt
from support.named_gpu import NamedGpu, opener

REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"
Answer = Callable[[Status], list[object]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return a function that sets how the check ends; it returns what the stage is asked."""

    def set_status(status: Status) -> list[object]:
        requests: list[object] = []

        def stand_in(request: object, *_: object) -> CheckResult:
            requests.append(request)
            return check(status)

        monkeypatch.setattr(check_stage, "check_candidate", stand_in)
        return requests

    return set_status


def _sanitized(*runs: SanitizerRun, status: Status = Status.PASSED) -> SanitizerResult:
    return SanitizerResult(
        status=status,
        kernel=KERNEL,
        candidate="c" * 64,
        device="cuda:0",
        sanitizer="compute-sanitizer 2025.3.1",
        runs=runs,
        elapsed_s=4.0,
    )


def _run(**fields: Any) -> SanitizerRun:
    known = {"tool": "memcheck", "outcome": "passed", "status": Status.PASSED, "elapsed_s": 2.0}
    return SanitizerRun.model_validate(known | fields)


CLEAN = _sanitized(_run(), _run(tool="racecheck"))
RACE = _sanitized(
    _run(),
    _run(
        tool="racecheck",
        outcome="findings",
        status=Status.DATA_RACE,
        findings=(Diagnostic(message="a race on shared memory", line=12),),
    ),
    status=Status.DATA_RACE,
)
MISSING = _sanitized(_run(outcome="unavailable", reason="install compute-sanitizer"))


@pytest.mark.parametrize(
    "case",
    [
        (Status.PASSED, CLEAN, ExitCode.PASSED, "passed", "  memcheck passed (2.0 s)"),
        (Status.PASSED, RACE, ExitCode.FELL_SHORT, "data_race", "12: error: a race on shared"),
        (Status.INCORRECT, RACE, ExitCode.FELL_SHORT, "incorrect", "  racecheck data_race"),
        (
            Status.PASSED,
            MISSING,
            ExitCode.MACHINE,
            "passed",
            "  memcheck unavailable: install compute-sanitizer",
        ),
    ],
    ids=["clean", "race", "wrong as well", "not installed"],
)
def test_the_sanitizer_s_findings_join_those_of_the_check(
    kopt: Kopt,
    answer: Answer,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[Status, SanitizerResult, ExitCode, str, str],
) -> None:
    checked, found, code, status, said = case
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))

    def stand_in(*_: object) -> SanitizerResult:
        return found

    monkeypatch.setattr(sanitize_stage, "sanitize", stand_in)
    answer(checked)
    words = ("check", REFERENCE, "--device", "cuda:0", "--sanitize")
    assert said in kopt(*words).stdout
    ending = kopt(*words, "--json")
    assert (ending.code, ending.document["status"]) == (code, status)
    assert ending.document["sanitizer"]["schema"] == "kopt.sanitizer/1"


def test_what_did_not_compile_is_not_sanitized(
    kopt: Kopt, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_device, "open_device", opener(NamedGpu()))
    answer(Status.COMPILE_ERROR)
    ending = kopt("check", REFERENCE, "--device", "cuda:0", "--sanitize", "--json")
    assert (ending.code, ending.document["sanitizer"]) == (ExitCode.FELL_SHORT, None)


def test_the_simulator_is_not_sanitized(kopt: Kopt, answer: Answer) -> None:
    requests = answer(Status.PASSED)
    ending = kopt("check", REFERENCE, "--device", "sim", "--sanitize")
    assert ending.code == ExitCode.USAGE
    assert "on a GPU, not on sim" in ending.stderr
    assert requests == []


def test_without_a_gpu_the_machine_lacks_what_sanitizes(
    kopt: Kopt, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = answer(Status.PASSED)
    monkeypatch.setattr(device_choice, "gpu_problem", lambda: "there is no NVIDIA driver here")
    ending = kopt("check", REFERENCE, "--sanitize")
    assert ending.code == ExitCode.MACHINE
    assert "--sanitize needs a GPU, and none can be used here" in ending.stderr
    assert requests == []
