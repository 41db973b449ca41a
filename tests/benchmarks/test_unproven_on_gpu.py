"""The script that runs unproven kernels on a GPU of another architecture, on a scripted one."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import unproven_facts
import unproven_on_gpu

from kopt.kernels.problem import Problem
from kopt.kernels.status import Status, Verdict
from kopt.kernels.unproven_facts import OtherGpuRun
from kopt.tools.bench import reference_side
from kopt.tools.check import stage as check_stage
from kopt.tools.devices.device import Arrays, ExecutionRequest
from support.bench_cases import CANDIDATE, FakeCompiler, bench_problem
from support.race_checks import replaced_simulator
from support.scripted_timer import QUIET, Script, ScriptedTimer


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """8 x 64 and 16 x 64, both with the same unproven kernel; nothing is compiled."""
    problem = bench_problem(tmp_path / "problem", (), ((8, 64), (16, 64)))
    folder = problem.folder / "unproven"
    folder.mkdir()
    for workload in problem.workloads:
        (folder / f"{workload.name}.sm_100a.cu").write_text(CANDIDATE.source)
    fake = FakeCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", fake)
    monkeypatch.setattr(reference_side, "compile_candidate", fake)
    replaced_simulator(monkeypatch)
    monkeypatch.setattr(unproven_facts, "load_problems", lambda: {problem.name: problem})
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    return problem


def _runs(script: Script, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[OtherGpuRun]:
    """Return what the script saves."""
    timer = ScriptedTimer(script)

    def opened(*_: object) -> nullcontext[ScriptedTimer]:
        return nullcontext(timer)

    monkeypatch.setattr(unproven_on_gpu, "open_device", opened)
    saved = folder / "on_gpu.json"
    monkeypatch.setattr(sys, "argv", ["unproven_on_gpu.py", "--save", str(saved)])
    unproven_on_gpu.main()
    return [OtherGpuRun.model_validate(run) for run in json.loads(saved.read_bytes())]


def _double(request: ExecutionRequest, outputs: Arrays) -> None:
    del request
    for output in outputs.values():
        output[:] = 2 * output


@pytest.mark.slow  # every unproven kernel
def test_each_kernel_is_checked_and_timed_against_the_reference(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _runs(Script(noise=QUIET), tmp_path, monkeypatch)
    assert [run.kernel for run in runs] == list(problem.kernel_ids)
    for run in runs:
        assert (run.status, run.arch, run.candidate) == (Status.PASSED, "sm_90a", CANDIDATE.id)
        assert run.verdict is Verdict.FASTER
        assert run.ratio is not None
        assert run.ratio > 1


def test_a_kernel_that_is_wrong_there_is_not_timed(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _runs(Script(noise=QUIET, spoil=_double), tmp_path, monkeypatch)
    assert {run.status for run in runs} == {Status.INCORRECT}
    assert {run.ratio for run in runs} == {None}
