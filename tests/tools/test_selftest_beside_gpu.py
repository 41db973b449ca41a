"""Samples on a GPU that lets everything pass: what the simulator beside it catches."""

from dataclasses import replace

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest
from kopt.tools.selftest.result import SampleOutcome
from kopt.tools.selftest.sample import read_samples
from kopt.tools.selftest.stage import SelftestRequest, run_selftest
from support.blind_gpu import BlindGpu
from support.race_checks import replaced_simulator

pytestmark = pytest.mark.slow  # compiles and simulates each sample

CAUGHT = (
    "evil_missing_barrier",
    "evil_race_between_blocks",
    "evil_negative_index",
    "evil_ticket_order",
    "evil_uninitialized_shared",
)
GOOD = ("good_flags_between_blocks", "good_two_pass")


def test_races_and_wild_accesses_are_caught_beside_a_gpu_and_honest_kernels_pass(
    settings: Settings,
) -> None:
    chosen = [one for one in read_samples() if one.name in (*CAUGHT, *GOOD)]
    gpu = BlindGpu()
    several = replace(settings, jobs=3)
    result = run_selftest(SelftestRequest(chosen, "sm_90a"), gpu, several)
    assert [one.name for one in result.samples] == [one.name for one in chosen]
    assert {one.name: one.outcome for one in result.samples} == {
        one.name: SampleOutcome.AS_EXPECTED for one in chosen
    }
    assert {one.level for one in result.samples} == {"full"}
    assert gpu.executions > 0


def test_a_sample_that_passes_for_want_of_a_race_check_says_what_is_missing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: ExecutionRequest) -> ExecutionOutcome:
        raise SetupError(f"no headers for {request.program.problem.name}")

    monkeypatch.setattr(replaced_simulator(monkeypatch), "execute", refuse)
    chosen = [one for one in read_samples() if one.name == "evil_missing_barrier"]
    (found,) = run_selftest(SelftestRequest(chosen, "sm_90a"), BlindGpu(), settings).samples
    assert found.outcome is SampleOutcome.MISSED
    assert "no race check: no headers for " in found.said


def test_a_sample_that_only_the_simulator_cannot_run_is_left_out_beside_a_gpu(
    settings: Settings,
) -> None:
    chosen = [one for one in read_samples() if one.status is Status.UNSUPPORTED_ON_SIM]
    result = run_selftest(SelftestRequest(chosen, "sm_90a"), BlindGpu(), settings)
    assert (result.samples, result.left_out) == ((), tuple(one.name for one in chosen))
