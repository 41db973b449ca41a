"""A resident evaluator: what callers share of it, and what of one caller never reaches another."""

import os
import signal
import socket
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.jobs.process_tree import session_tree
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.lost_timing import TimingLost
from kopt.tools.devices.timer import CandidateSide, LibraryRun, TimingFailure, TimingRequest
from kopt.tools.remote.device import RemoteGpu
from kopt.tools.resident.control import ask_evaluators
from kopt.tools.resident.greeting import EvaluatorStatus
from kopt.tools.resident.open_resident import open_resident
from kopt.tools.resident.place import place_of
from support.bench_results import H100
from support.scripted_device import INPUTS, library_side, plan
from support.stdio_process import wait_until_gone
from support.tiny_problem import tiny_candidate, write_tiny_problem

pytestmark = pytest.mark.slow  # an evaluator is a Python that loads kopt, and so is each worker

BOUND_S = 60.0


class _Rig:
    """A tiny kernel, and the settings of its callers."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.problem: Problem = load_problem(write_tiny_problem(folder))
        self.cubin = folder / "any.cubin"
        self.cubin.write_bytes(b"what a worker of a test never loads")

    @contextmanager
    def opened(self) -> Generator[RemoteGpu]:
        device = open_resident("cuda:0", self.settings, ignore, has_spare=True)
        assert isinstance(device, RemoteGpu)
        with closing(device):
            yield device

    def run(self, device: RemoteGpu, act: str, problem: Problem | None = None) -> ExecutionOutcome:
        """Call a library's function that does `act`."""
        used = problem or self.problem
        side = library_side(act)
        return device.run_library(
            LibraryRun(used, used.workload("b8xh64"), side, INPUTS, poison=0xA5, timeout_s=BOUND_S)
        )

    def worker(self, device: RemoteGpu, problem: Problem | None = None) -> float:
        """Return the number of the worker that serves this caller."""
        outcome = self.run(device, "execute identity", problem)
        return float(outcome.outputs["out"].flat[0])

    def execution(self) -> ExecutionRequest:
        program = Program(tiny_candidate(), self.problem, plan(), self.cubin)
        return ExecutionRequest(program, INPUTS, poison=0xA5, timeout_s=BOUND_S)

    def timing(self) -> TimingRequest:
        side = CandidateSide(plan=plan(), cubin_path=str(self.cubin))
        return TimingRequest(
            problem=self.problem,
            workload=self.problem.workload("b8xh64"),
            sides=(side, side),
            inputs=INPUTS,
            poison=0xA5,
            layout_seed=1,
        )

    def ask(self, kind: Literal["status", "stop", "end"] = "status") -> EvaluatorStatus:
        """Return the status of the one evaluator."""
        (only,) = ask_evaluators(self.settings, kind).evaluators
        return only


@pytest.fixture
def rig(resident_settings: Settings, tmp_path: Path) -> _Rig:
    """Return what callers of an evaluator need; it starts with the first."""
    return _Rig(resident_settings, tmp_path)


def test_the_next_call_finds_the_workers_of_the_one_before(rig: _Rig) -> None:
    with rig.opened() as device:
        assert (device.name, device.facts, device.gpu.arch) == ("cuda:0", H100, "sm_90a")
        outcome = device.execute(rig.execution())
        assert outcome.status is Status.PASSED
        np.testing.assert_array_equal(outcome.outputs["out"], 2 * INPUTS["x"])
        first = rig.worker(device)
    with rig.opened() as device:
        assert rig.worker(device) == first
    while (status := rig.ask()).callers:  # the last one is just hanging up
        pass
    assert (status.device, status.turns) == ("cuda:0", 3)


def test_callers_of_two_problems_keep_a_worker_each(rig: _Rig, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    written = load_problem(write_tiny_problem(tmp_path / "other"))
    # Only a folder that a library baseline reads is sent.
    other = written.model_copy(update={"baselines": (library_side().baseline,)})
    with rig.opened() as one, rig.opened() as two:
        workers = rig.worker(one), rig.worker(two, other)
        assert workers[0] != workers[1]
        assert (rig.worker(one), rig.worker(two, other)) == workers
        assert (rig.worker(two), rig.worker(one, other)) == workers


def test_a_fault_of_one_caller_does_not_reach_the_next(rig: _Rig) -> None:
    with rig.opened() as one, rig.opened() as two:
        hurt = rig.worker(one)
        failed = rig.run(one, "execute fault CUDA_ERROR_ILLEGAL_ADDRESS")
        assert failed.status is not Status.PASSED
        assert rig.worker(two) != hurt


def test_what_a_caller_leaves_running_ends_and_its_worker_with_it(rig: _Rig) -> None:
    def spin() -> None:
        with pytest.raises(InfraError):
            rig.run(gone, "execute spin")

    with rig.opened() as gone, rig.opened() as two:
        hung = rig.worker(gone)
        spinning = threading.Thread(target=spin)
        spinning.start()
        while [one.state for one in rig.ask().callers] != ["on the GPU", "idle"]:
            assert spinning.is_alive()
        began = time.monotonic()
        gone.close()
        assert rig.worker(two) != hung
        assert time.monotonic() - began < BOUND_S / 2  # what spins would have had all of it
        spinning.join(BOUND_S)


def test_a_timing_session_of_one_caller_keeps_the_others_waiting(rig: _Rig) -> None:
    order: list[str] = []

    def execute() -> None:
        assert two.execute(rig.execution()).status is Status.PASSED
        order.append("executed")

    with rig.opened() as one, rig.opened() as two:
        other = threading.Thread(target=execute)
        with one.open_timing(rig.timing()) as session:
            assert not isinstance(session, TimingFailure)
            other.start()
            while "waiting" not in [caller.state for caller in rig.ask().callers]:
                assert other.is_alive()
            replays = session.replay((0, 1))
            assert not isinstance(replays, TimingFailure)
            assert replays.us_per_call == (1.0, 2.0)
            assert one.execute(rig.execution()).status is Status.PASSED
            order.append("closed")
        other.join(BOUND_S)
    assert order == ["closed", "executed"]
    waits = rig.ask()
    assert waits.wait_p95_s is not None
    assert waits.wait_p50_s is not None
    assert waits.wait_p95_s >= waits.wait_p50_s >= 0


def test_an_evaluator_that_is_killed_costs_a_retry(rig: _Rig) -> None:
    with rig.opened() as device:
        rig.worker(device)
        killed = rig.ask().pid
        tree = session_tree(killed)
        with pytest.raises(TimingLost), device.open_timing(rig.timing()) as session:
            os.kill(killed, signal.SIGKILL)
            assert not isinstance(session, TimingFailure)
            session.replay((0,))
        wait_until_gone(tree)
        assert device.execute(rig.execution()).status is Status.PASSED
        assert rig.ask().pid != killed


def test_callers_that_start_together_share_one_evaluator(rig: _Rig) -> None:
    workers: list[float] = []

    def call() -> None:
        with rig.opened() as device:
            workers.append(rig.worker(device))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND_S)
    assert len(workers) == 4
    assert len(set(workers)) == 1
    assert rig.ask().turns == 4


def test_a_stopped_evaluator_ends_after_its_last_caller(rig: _Rig) -> None:
    with rig.opened() as device:
        first = rig.worker(device)
        stopping = rig.ask("stop")
        tree = session_tree(stopping.pid)
        assert stopping.is_stopping
        assert rig.worker(device) == first
    wait_until_gone(tree)
    assert ask_evaluators(rig.settings, "status").evaluators == ()


def test_who_comes_while_an_evaluator_is_stopping_meets_the_next_one(rig: _Rig) -> None:
    unwanted = replace(rig.settings, gpu_idle_s=0.0)
    with rig.opened() as device:
        first = rig.worker(device)
        stopping = rig.ask("stop")
        assert open_resident("cuda:0", unwanted, ignore, has_spare=True) is None
        with rig.opened() as late:
            assert rig.worker(late) != first
            assert rig.worker(device) == first
            found = ask_evaluators(rig.settings, "status").evaluators
            assert {one.pid: one.is_stopping for one in found}.pop(stopping.pid)
            assert len(found) == 2


def test_who_calls_at_once_after_an_end_is_served(rig: _Rig) -> None:
    for _ in range(3):
        with rig.opened() as device:
            rig.worker(device)
        rig.ask("end")


def test_callers_of_an_evaluator_that_ends_now_begin_anew(rig: _Rig) -> None:
    with rig.opened() as device:
        first = rig.worker(device)
        tree = session_tree(rig.ask().pid)
        rig.ask("end")
        assert rig.worker(device) != first
        wait_until_gone(tree)


def test_an_evaluator_without_callers_ends_by_itself_with_its_workers(rig: _Rig) -> None:
    rig.settings = replace(rig.settings, gpu_idle_s=0.1)
    with rig.opened() as device:
        rig.worker(device)
        tree = session_tree(rig.ask().pid)
        assert len(tree) > 1
    wait_until_gone(tree)


def test_sigterm_ends_an_evaluator_and_its_workers(rig: _Rig) -> None:
    with rig.opened() as device:
        rig.worker(device)
    pid = rig.ask().pid
    tree = session_tree(pid)
    os.kill(pid, signal.SIGTERM)
    wait_until_gone(tree)
    assert not place_of("cuda:0", rig.settings).socket_path.exists()


def test_none_is_started_where_none_is_wanted(rig: _Rig) -> None:
    unwanted = replace(rig.settings, gpu_idle_s=0.0)
    assert open_resident("cuda:0", unwanted, ignore, has_spare=True) is None
    with rig.opened() as device:
        first = rig.worker(device)
    found = open_resident("cuda:0", unwanted, ignore, has_spare=True)
    assert isinstance(found, RemoteGpu)
    with closing(found):
        assert rig.worker(found) == first


def test_what_is_no_caller_is_hung_up_on_and_harms_nobody(rig: _Rig) -> None:
    with rig.opened() as device:
        first = rig.worker(device)
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b'{"kind": "serve"}\n\xff\xff\xff\xff' * 9):
            stranger = place_of("cuda:0", rig.settings).connected()
            assert stranger is not None
            with stranger:
                stranger.sendall(said)
                stranger.settimeout(BOUND_S)
                stranger.shutdown(socket.SHUT_WR)
                with suppress(ConnectionResetError):  # it has not read all of that
                    while stranger.recv(4096):
                        pass
        assert rig.worker(device) == first
