"""A GPU behind ssh gives what it gives without: verdicts, names, and times of the same size."""

import sys
from pathlib import Path

import pytest

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.stand_in_ssh import StandInSsh

pytestmark = pytest.mark.gpu

KERNEL = "silu_and_mul_b128xh14336"
WINNER = Path(__file__).parents[3] / "kernels/problems/silu_and_mul/winners/silu_and_mul.sm_90a.cu"


@pytest.fixture
def devices(box: StandInSsh) -> tuple[str, str]:
    """Return the GPU's two names; the other machine has this one's Python and modules."""
    box.python_path = ":".join(filter(None, sys.path))
    box.plan()
    return "cuda:0", "ssh://box/cuda:0"


def test_a_check_ends_alike_there(kopt: Kopt, devices: tuple[str, str]) -> None:
    found: list[CheckResult] = []
    for device in devices:
        words = ("check", WINNER, "--kernel", KERNEL, "--level", "full", "--device", device)
        ending = kopt(*words, "--json")
        assert ending.code == ExitCode.PASSED, ending
        found.append(CheckResult.model_validate_json(ending.stdout))
    here, there = found
    assert there.status is Status.PASSED
    assert there.device == "ssh://box/cuda:0"
    assert here.status is Status.PASSED


def test_a_benchmark_measures_the_same_gpu(kopt: Kopt, devices: tuple[str, str]) -> None:
    found: list[BenchResult] = []
    for device in devices:
        words = ("bench", WINNER, "--kernel", KERNEL, "--baseline", "reference", "--device", device)
        ending = kopt(*words, "--json")
        assert ending.code == ExitCode.PASSED, ending
        found.append(BenchResult.model_validate_json(ending.stdout))
    here, there = found
    assert here.gpu is not None and there.gpu is not None
    assert here.gpu.uuid == there.gpu.uuid
    assert here.verdict is there.verdict
    ratios = [one.comparisons[0].speedup for one in found]
    assert ratios[1] == pytest.approx(ratios[0], rel=0.03)
