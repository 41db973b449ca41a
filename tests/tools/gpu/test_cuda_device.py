"""The `cuda:N` device over workers that play a GPU: statuses, turns, and what is replaced when."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import Timer, TimingFailure
from kopt.tools.gpu import device as device_module
from kopt.tools.gpu import gpu_turns
from kopt.tools.gpu.ticket_lock import TicketLock
from support.bench_results import H100
from support.scripted_device import INPUTS, ScriptedDevice, plan, side
from support.scripted_gpu import MISTAKEN_ENGINE, STAGED

pytestmark = pytest.mark.slow  # a worker process each
BOUND_S = 60.0


def test_outputs_of_a_candidate_come_back_with_the_sandbox_level(scripted: ScriptedDevice) -> None:
    outcome = scripted.execute()
    assert outcome.status is Status.PASSED
    assert outcome.sandbox == scripted.workers[0].level
    np.testing.assert_array_equal(outcome.outputs["out"], 2 * INPUTS["x"])


def test_device_is_named_and_described_before_any_worker_starts(scripted: ScriptedDevice) -> None:
    device: Device = scripted.device
    timer: Timer = scripted.device
    assert device.gpu is not None
    assert (device.name, device.gpu.arch, timer.facts) == ("cuda:0", "sm_90a", H100)
    assert scripted.workers == []


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("execute fault CUDA_ERROR_ILLEGAL_ADDRESS", Status.OUT_OF_BOUNDS),
        ("execute fault CUDA_ERROR_MISALIGNED_ADDRESS", Status.MISALIGNED),
        ("execute fault CUDA_ERROR_ASSERT", Status.CRASH),
        ("execute fault CUDA_ERROR_INVALID_VALUE", Status.LAUNCH_ERROR),
        ("execute damage after", Status.OUT_OF_BOUNDS),
    ],
)
def test_failure_is_a_status_and_the_next_candidate_has_a_fresh_worker(
    scripted: ScriptedDevice, act: str, status: Status
) -> None:
    hurt = scripted.identity()
    outcome = scripted.execute(act)
    assert (outcome.status, outcome.outputs) == (status, {})
    assert scripted.identity() != hurt
    assert not scripted.workers[0].is_alive


def test_changed_input_is_a_status_that_leaves_the_worker(scripted: ScriptedDevice) -> None:
    before = scripted.identity()
    assert scripted.execute("execute damage inside").status is Status.INPUT_MUTATED
    assert scripted.identity() == before


def test_endless_kernel_is_killed_and_the_spare_runs_the_next(scripted: ScriptedDevice) -> None:
    scripted.execute()
    assert len(scripted.workers) == 2  # the second is the spare
    outcome = scripted.execute("execute spin", timeout_s=0.5)
    assert outcome.status is Status.TIMEOUT
    assert not scripted.workers[0].is_alive
    assert scripted.execute().status is Status.PASSED
    assert scripted.workers[1].is_alive
    assert len(scripted.workers) == 3  # a new spare


@pytest.mark.parametrize("act", ["execute exit", "execute raise no memory", "execute nothing"])
def test_failure_of_the_worker_itself_is_no_status(scripted: ScriptedDevice, act: str) -> None:
    with pytest.raises(InfraError):
        scripted.execute(act)
    assert scripted.execute().status is Status.PASSED


def test_code_that_blames_the_machine_is_raised_and_the_worker_replaced(
    scripted: ScriptedDevice,
) -> None:
    before = scripted.identity()
    with pytest.raises(InfraError, match="CUDA_ERROR_ECC_UNCORRECTABLE"):
        scripted.execute("execute fault CUDA_ERROR_ECC_UNCORRECTABLE")
    assert scripted.identity() != before


def test_worker_that_died_unasked_is_replaced_without_a_word(scripted: ScriptedDevice) -> None:
    scripted.execute()
    scripted.workers[0].end()
    assert scripted.execute().status is Status.PASSED


def test_a_kernel_that_its_module_is_said_to_lack_is_asked_for_in_a_fresh_worker(
    scripted: ScriptedDevice,
) -> None:
    outcome = scripted.execute("execute fault CUDA_ERROR_NOT_FOUND")
    assert outcome.status is Status.LAUNCH_ERROR
    assert [worker.is_alive for worker in scripted.workers[:2]] == [False, False]


def test_an_abandoned_device_serves_again_once_it_is_readmitted(scripted: ScriptedDevice) -> None:
    before = scripted.identity()
    scripted.device.abandon()  # before the use that it is meant for has reached a worker
    with pytest.raises(InfraError, match="was ended"):
        scripted.execute()
    with (
        pytest.raises(InfraError, match="was ended"),
        scripted.device.open_timing(scripted.timing(side(), side())),
    ):
        pass
    scripted.device.readmit()
    assert scripted.identity() != before


def test_worker_that_opens_another_gpu_is_not_used(
    settings: Settings, compile_problem: Problem, tmp_path: Path
) -> None:
    made = ScriptedDevice(settings, compile_problem, tmp_path / "locks", MISTAKEN_ENGINE)
    with pytest.raises(InfraError, match="GPU-other"):
        made.execute()
    assert not made.workers[0].is_alive
    made.device.close()


def test_inputs_are_written_late_exactly_for_dependent_launches(scripted: ScriptedDevice) -> None:
    request = scripted.request("execute late-producer")
    late = [
        bool(scripted.device.execute(changed).outputs["out"].all())
        for pdl in (False, True)
        for changed in [replace(request, program=replace(request.program, plan=plan(pdl)))]
    ]
    assert late == [False, True]
    early = replace(request, program=replace(request.program, plan=plan(True)), late_inputs=False)
    assert not scripted.device.execute(early).outputs["out"].all()


def test_candidate_without_a_cubin_is_a_mistake_of_the_caller(scripted: ScriptedDevice) -> None:
    request = scripted.request()
    with pytest.raises(ValueError, match="compile"):
        scripted.device.execute(replace(request, program=replace(request.program, cubin_path=None)))


def test_prepare_brings_the_worker_up(scripted: ScriptedDevice) -> None:
    scripted.device.prepare(scripted.request().program)
    assert scripted.workers[0].is_alive
    scripted.execute()
    assert len(scripted.workers) == 2


def test_library_that_cannot_run_here_keeps_its_worker(scripted: ScriptedDevice) -> None:
    before = scripted.identity()
    outcome = scripted.run_library("execute fault ImportError")
    assert outcome.status is Status.LAUNCH_ERROR
    assert scripted.identity() == before


def test_library_runs_on_the_worker_of_the_candidate(scripted: ScriptedDevice) -> None:
    outcome = scripted.run_library("execute identity")
    assert outcome.outputs["out"].flat[0] == scripted.identity()


def test_copy_ceiling_is_measured_once(scripted: ScriptedDevice) -> None:
    assert scripted.device.copy_ceiling_gb_s() == 3001.0
    assert scripted.device.copy_ceiling_gb_s() == 3001.0


def test_threads_take_turns(scripted: ScriptedDevice) -> None:
    outcomes: list[Status] = []

    def execute() -> None:
        outcomes.append(scripted.execute().status)

    threads = [threading.Thread(target=execute) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND_S)
    assert outcomes == [Status.PASSED] * 8
    assert len(scripted.workers) == 2


def test_lock_is_free_between_requests_and_held_in_a_session(scripted: ScriptedDevice) -> None:
    scripted.execute()
    assert scripted.lock.holder() is None
    with scripted.device.open_timing(scripted.timing(side())):
        assert scripted.lock.holder() is not None
    assert scripted.lock.holder() is None


def test_who_waits_for_the_gpu_is_told_its_place(scripted: ScriptedDevice) -> None:
    told = threading.Event()

    def on_wait(text: str) -> None:
        scripted.waits.append(text)
        told.set()

    other = scripted.another(on_wait)
    thread = threading.Thread(target=other.execute, args=[scripted.request()])
    with scripted.device.open_timing(scripted.timing(side())):
        thread.start()
        assert told.wait(BOUND_S)
    thread.join(BOUND_S)
    other.close()
    assert scripted.waits[0].startswith("waiting for cuda:0, 1 before you; held by process ")


def test_thread_that_opened_a_session_may_execute_in_it(scripted: ScriptedDevice) -> None:
    with scripted.device.open_timing(scripted.timing(side())) as session:
        assert not isinstance(session, TimingFailure)
        assert scripted.execute().status is Status.PASSED
        assert not isinstance(session.replay([0]), TimingFailure)


def test_gpu_time_is_that_of_the_turn_counted_once(
    scripted: ScriptedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[float] = []
    monkeypatch.setattr(gpu_turns, "count_gpu_time", turns.append)
    scripted.execute()  # in two turns, the first for the context
    turns.clear()
    with scripted.device.open_timing(scripted.timing(side())):
        scripted.execute()
        assert turns == []
    scripted.execute()
    assert len(turns) == 2 and min(turns) > 0.0


def test_all_but_the_execution_is_done_while_another_process_has_the_gpu(
    scripted: ScriptedDevice,
) -> None:
    waits = threading.Event()
    seen: list[tuple[bool, bool]] = []

    def on_wait(text: str) -> None:
        assert text
        worker = scripted.workers[0]
        seen.append((worker.is_alive, (worker.folder / STAGED).exists()))
        waits.set()

    other = scripted.another(on_wait, has_spare=False)
    for _ in range(2):  # the first waits for a context, the second has one
        thread = threading.Thread(target=other.execute, args=[scripted.request()])
        waits.clear()
        with scripted.lock.hold():
            thread.start()
            assert waits.wait(BOUND_S)
        thread.join(BOUND_S)
    other.close()
    assert seen[0] == (True, False)
    assert seen[-1] == (True, True)


def test_what_cannot_be_staged_is_for_the_execution_to_say(scripted: ScriptedDevice) -> None:
    assert scripted.execute("stage fault CUDA_ERROR_OUT_OF_MEMORY").status is Status.PASSED


@pytest.mark.parametrize("act", ["stage exit", "stage raise no memory", "stage spin"])
def test_a_worker_that_fails_before_it_executes_blames_no_candidate(
    scripted: ScriptedDevice, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "_STAGE_S", 0.5)
    with pytest.raises(InfraError):
        scripted.execute(act)
    monkeypatch.undo()
    assert scripted.execute().status is Status.PASSED


def test_interrupt_frees_the_gpu_and_ends_the_worker(scripted: ScriptedDevice) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        scripted.device.open_timing(scripted.timing(side())),
    ):
        raise KeyboardInterrupt
    assert not scripted.workers[0].is_alive
    assert TicketLock(H100.uuid, scripted.locks).holder() is None
    assert scripted.execute().status is Status.PASSED
