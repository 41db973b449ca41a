"""The command line on a real GPU; skipped where there is none."""

from pathlib import Path

import pytest

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.status import Status
from kopt.search.reports.run_report import RunReport
from kopt.search.step.result import StepResult
from kopt.server.exits import ExitCode
from support.command_line import Kopt

pytestmark = pytest.mark.gpu

REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"
KERNEL = "silu_and_mul_b128xh14336"


def test_a_reference_kernel_passes_its_full_check(kopt: Kopt) -> None:
    ending = kopt("check", REFERENCE, "--device", "cuda:0", "--level", "full", "--json")
    assert (ending.code, ending.document["device"]) == (ExitCode.PASSED, "cuda:0")


def test_a_reference_kernel_is_timed_and_every_timed_output_is_right(kopt: Kopt) -> None:
    ending = kopt("bench", REFERENCE, "--kernel", KERNEL, "--device", "cuda:0", "--json")
    result = BenchResult.model_validate_json(ending.stdout)
    assert result.status is Status.PASSED
    assert result.verdict is not None
    assert result.latency is not None and result.null_kernel_us is not None
    assert result.latency.median_us > result.null_kernel_us
    outputs = result.timed_outputs
    assert outputs is not None and outputs.calls > 0
    assert outputs.identical + outputs.within_gates == outputs.calls


def test_a_winner_that_is_faster_has_a_full_check_behind_it(kopt: Kopt) -> None:
    winner = REFERENCE.parent / "winners" / "silu_and_mul.sm_90a.cu"
    options = ("--kernel", KERNEL, "--device", "cuda:0", "--baseline", "reference", "--json")
    first = kopt("bench", winner, *options)
    result = BenchResult.model_validate_json(first.stdout)
    assert (first.code, result.verdict, result.checked) == (ExitCode.PASSED, "faster", "full")
    again = BenchResult.model_validate_json(kopt("bench", winner, *options).stdout)
    assert (again.checked, again.check.level) == ("full", "quick")
    quick = kopt("bench", winner, "--quick", *options)
    assert BenchResult.model_validate_json(quick.stdout).is_unproven
    assert quick.code == ExitCode.FELL_SHORT


def test_a_sweep_ends_with_a_measured_winner(kopt: Kopt) -> None:
    ending = kopt("run", "--kernel", KERNEL, "--device", "cuda:0", "--rounds", "1", "--json")
    report = RunReport.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert report.gpu is not None and report.best_speedup is not None
    assert len(report.winner_times) == 3


def test_a_step_measures_its_candidates_and_what_limits_the_leader(kopt: Kopt) -> None:
    ending = kopt("step", "--kernel", KERNEL, "--device", "cuda:0", "--json")
    result = StepResult.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert result.gpu is not None and result.beam[0].speedup is not None
    assert result.bottleneck is not None and result.bottleneck_problem is None


def test_doctor_names_the_gpu(kopt: Kopt) -> None:
    names = {entry["name"]: entry for entry in kopt("doctor", "--json").document["findings"]}
    assert names["GPU cuda:0"]["is_present"]
    assert names["GPU in the sandbox"]["is_present"]
