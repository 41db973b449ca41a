"""Checks whose candidates run on another machine's simulator, over an ssh that may fail."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.settings import settings_from_environment
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from kopt.server.jobs.process_tree import session_tree
from kopt.server.work.api import check
from support.command_line import Kopt
from support.stand_in_ssh import StandInSsh
from support.stdio_process import wait_until_gone
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # each connection starts a Python that loads kopt

DEVICE = "ssh://box/sim"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a tiny problem of the user's own."""
    return write_tiny_problem(tmp_path)


def test_a_candidate_is_checked_there_and_the_code_goes_once(
    kopt: Kopt, unvisited_box: StandInSsh, folder: Path
) -> None:
    first = kopt("check", folder / "reference.cu", "--device", DEVICE)
    assert first.code == ExitCode.PASSED
    assert first.stdout.startswith("passed  scale_rows_b8xh64")
    assert "sending kopt's code to box, once a version" in first.stderr
    again = kopt("check", folder / "reference.cu", "--device", DEVICE, "--level", "full")
    assert again.code == ExitCode.PASSED
    assert "connecting to box" in again.stderr
    assert "sending" not in again.stderr
    assert (len(unvisited_box.connections), len(unvisited_box.codes)) == (2, 1)


def test_a_fault_is_told_with_its_line_as_from_here(
    kopt: Kopt, box: StandInSsh, folder: Path
) -> None:
    source = (folder / "reference.cu").read_text()
    wrong = folder / "wrong.cu"
    wrong.write_text(source.replace("h < H;", "h < H + 1;"))
    here = kopt("check", wrong, "--device", "sim", "--json")
    there = kopt("check", wrong, "--device", DEVICE, "--json")
    assert there.code == ExitCode.FELL_SHORT
    assert there.document["status"] == here.document["status"] != "passed"
    assert there.document["diagnostics"] == here.document["diagnostics"]
    assert box.connections


def test_a_time_is_estimated_from_what_was_counted_there(
    kopt: Kopt, box: StandInSsh, folder: Path
) -> None:
    words = ("bench", folder / "reference.cu", "--json", "--device")
    here, there = kopt(*words, "sim"), kopt(*words, DEVICE)
    assert there.code == here.code == ExitCode.PASSED
    assert there.document["comparisons"] == here.document["comparisons"] != []
    assert box.connections


def test_accesses_are_counted_there(kopt: Kopt, box: StandInSsh, folder: Path) -> None:
    words = ("profile", folder / "reference.cu", "--json", "--device")
    here, there = kopt(*words, "sim"), kopt(*words, DEVICE)
    assert there.document["counters"] == here.document["counters"] is not None
    assert there.document["traffic"] == here.document["traffic"] != []
    assert box.answered_bytes > 8 * 64 * 4  # the outputs of an execution, too


def test_a_lost_connection_is_had_again_and_the_check_goes_on(
    kopt: Kopt, box: StandInSsh, folder: Path
) -> None:
    words = ("check", folder / "reference.cu", "--level", "full", "--device", DEVICE)
    assert kopt(*words).code == ExitCode.PASSED
    box.plan(3000, 6000)  # within answers to the first executions
    ending = kopt(*words)
    assert ending.code == ExitCode.PASSED
    assert ending.stdout.startswith("passed")
    assert "the connection to box is lost; trying again in 0 s" in ending.stderr
    assert len(box.connections) == 1 + 3


def test_a_connection_that_stays_away_is_one_line(
    kopt: Kopt, box: StandInSsh, folder: Path
) -> None:
    box.plan(1500, 0, 0)
    ending = kopt("check", folder / "reference.cu", "--device", DEVICE)
    assert ending.code == ExitCode.MACHINE
    assert (
        "kopt: the connection to box was lost and could not be had again in 2 tries over 0 s; what"
        " was finished is kept: start again once the machine can be reached (ssh://box/sim: box"
        " cannot be reached from here (ssh: connect to host box port 22: No route to host))"
    ) in ending.stderr


def test_a_call_that_costs_every_connection_ends(kopt: Kopt, box: StandInSsh, folder: Path) -> None:
    box.plan(1500, 1500, 1500, 1500)
    ending = kopt("check", folder / "reference.cu", "--device", DEVICE)
    assert ending.code == ExitCode.MACHINE
    assert "box: the connection was lost 4 times under the same call" in ending.stderr
    assert len(box.connections) == 4


def test_code_that_another_kopt_has_sent_stays_beside(
    kopt: Kopt, unvisited_box: StandInSsh, folder: Path
) -> None:
    other = unvisited_box.far_home / "remote" / "code" / "0123456789abcdef"
    other.mkdir(parents=True)
    assert kopt("check", folder / "reference.cu", "--device", DEVICE).code == ExitCode.PASSED
    assert other in unvisited_box.codes
    assert len(unvisited_box.codes) == 2


def test_two_callers_share_one_machine(
    kopt: Kopt, unvisited_box: StandInSsh, folder: Path, shared_home: Path
) -> None:
    del kopt  # its environment
    problem = load_problem(folder)
    case = Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu"))
    settings = settings_from_environment()
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(check, case, DEVICE, "full", settings=settings) for _ in range(2)]
        results = [call.result() for call in calls]
    assert [one.status for one in results] == [Status.PASSED] * 2
    assert (len(unvisited_box.connections), len(unvisited_box.codes)) == (2, 1)
    assert settings.home == shared_home


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_runs_on_there_without_its_caller(
    box: StandInSsh,
    folder: Path,
    shared_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(shared_home))
    endless = folder / "endless.cu"
    spin = "for (volatile int spin = 0; spin < 1;) {}\n  for (int h = "
    endless.write_text((folder / "reference.cu").read_text().replace("for (int h = ", spin))
    words = [sys.executable, "-m", "kopt", "check", str(endless), "--device", DEVICE]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("seed 1" in line for line in process.stderr)
        (far,) = box.far_pids
        while len(there := session_tree(far)) < 2:  # until the candidate runs
            assert process.poll() is None
        process.send_signal(number)
        process.communicate()
    assert process.returncode in (ExitCode.INTERRUPTED, -signal.SIGKILL)
    wait_until_gone(there)
