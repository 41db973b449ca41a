"""Another machine's GPU as a device: its workers, in their sandbox there, play the GPU."""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kopt.config.remote_address import remote_address
from kopt.config.settings import settings_from_environment
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.jobs.process_tree import session_tree
from kopt.tools.devices.device import ExecutionRequest, Program
from kopt.tools.devices.lost_timing import TimingLost
from kopt.tools.devices.timer import (
    CandidateSide,
    LibraryRun,
    Side,
    TimingFailure,
    TimingRequest,
    replay_each,
)
from kopt.tools.gpu.ticket_lock import TicketLock
from kopt.tools.remote.device import RemoteGpu
from kopt.tools.remote.open_remote import open_remote
from support.bench_results import H100
from support.far_twin import far_python
from support.scripted_device import INPUTS, library_side, plan
from support.stand_in_ssh import StandInSsh
from support.stdio_process import wait_until_gone
from support.tiny_problem import tiny_candidate, write_tiny_problem

pytestmark = pytest.mark.slow  # each connection starts a Python that loads kopt

BOUND_S = 60.0


class _Rig:
    """The open device, and requests of the tiny kernel."""

    def __init__(self, device: RemoteGpu, folder: Path) -> None:
        self.device = device
        self.problem = load_problem(folder)
        self.cubin = folder / "any.cubin"
        self.cubin.write_bytes(b"what a worker of a test never loads")

    def execution(self) -> ExecutionRequest:
        program = Program(tiny_candidate(), self.problem, plan(), self.cubin)
        return ExecutionRequest(program, INPUTS, poison=0xA5, timeout_s=BOUND_S)

    def timing(self, *sides: Side) -> TimingRequest:
        return TimingRequest(
            problem=self.problem,
            workload=self.problem.workload("b8xh64"),
            sides=sides or (self.side(), self.side()),
            inputs=INPUTS,
            poison=0xA5,
            layout_seed=1,
        )

    def side(self) -> CandidateSide:
        return CandidateSide(plan=plan(), cubin_path=str(self.cubin))


@pytest.fixture
def rig(
    box: StandInSsh, tmp_path: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[_Rig]:
    """Return the device, open."""
    monkeypatch.setenv("KOPT_HOME", str(shared_home))
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", str(far_python(tmp_path, "workers")))
    tests = str(Path(__file__).parents[2])
    box.python_path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    box.plan()
    address = remote_address("ssh://box/cuda:0")
    device = open_remote(address, settings_from_environment(), lambda _: None)
    with closing(device):
        assert isinstance(device, RemoteGpu)
        yield _Rig(device, write_tiny_problem(tmp_path))


def test_a_call_runs_in_a_worker_there_and_its_outputs_come_back(rig: _Rig) -> None:
    assert (rig.device.facts, rig.device.gpu.arch) == (H100, "sm_90a")
    outcome = rig.device.execute(rig.execution())
    assert outcome.status is Status.PASSED
    assert outcome.sandbox is not None
    np.testing.assert_array_equal(outcome.outputs["out"], 2 * INPUTS["x"])
    assert rig.device.copy_ceiling_gb_s() == 3001.0
    rig.device.close()
    assert rig.device.copy_ceiling_gb_s() == 3001.0  # known, with nobody to ask


def test_a_fault_there_is_a_status_here(rig: _Rig) -> None:
    side = library_side("execute fault CUDA_ERROR_ILLEGAL_ADDRESS")
    workload = rig.problem.workload("b8xh64")
    outcome = rig.device.run_library(LibraryRun(rig.problem, workload, side, INPUTS, poison=0xA5))
    assert outcome.status is not Status.PASSED
    assert outcome.outputs == {}
    assert rig.device.execute(rig.execution()).status is Status.PASSED


def test_a_session_is_replayed_and_collected(rig: _Rig, box: StandInSsh) -> None:
    with rig.device.open_timing(rig.timing()) as session:
        holder = TicketLock(H100.uuid, box.far_home / "locks").holder()
        assert holder is not None
        assert (holder.pid, holder.command) == (box.far_pids[0], "kopt over-ssh")
        assert not isinstance(session, TimingFailure)
        assert session.facts.sets == 2
        replays = session.replay((0, 1, 1))
        assert not isinstance(replays, TimingFailure)
        assert replays.us_per_call == (1.0, 2.0, 2.0)
        several = replay_each(session, ((1,), (0, 1)))
        assert not isinstance(several, TimingFailure)
        assert [one.us_per_call for one in several] == [(2.0,), (1.0, 2.0)]
        collected = session.collect((1, 0))
        assert not isinstance(collected, TimingFailure)
        assert collected.rotations == (1, 0)
        doubled = 2 * INPUTS["x"]
        np.testing.assert_array_equal(collected.outputs[0]["out"], np.roll(doubled, 1, axis=0))
        assert session.warm_us(1) == 1.0
        # The thread that holds the session may go on to use the device.
        assert rig.device.execute(rig.execution()).status is Status.PASSED


def test_a_side_that_cannot_be_opened_is_named(rig: _Rig) -> None:
    broken = library_side("open fault CUDA_ERROR_INVALID_VALUE")
    with rig.device.open_timing(rig.timing(rig.side(), broken)) as session:
        assert isinstance(session, TimingFailure)
        assert session.side == 1
    with rig.device.open_timing(rig.timing()) as session:
        assert not isinstance(session, TimingFailure)


def test_other_threads_wait_while_a_session_is_open(rig: _Rig) -> None:
    order: list[str] = []
    asked = threading.Event()

    def execute() -> None:
        asked.set()
        rig.device.execute(rig.execution())
        order.append("executed")

    other = threading.Thread(target=execute)
    with rig.device.open_timing(rig.timing()) as session:
        other.start()
        assert asked.wait(BOUND_S)
        for _ in range(20):
            assert not isinstance(session, TimingFailure)
            session.replay((0,))
        order.append("closed")
    other.join(BOUND_S)
    assert order == ["closed", "executed"]


def test_an_interrupt_within_a_session_stays_one_and_leaves_nothing(
    rig: _Rig, box: StandInSsh
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    rig.device.execute(rig.execution())
    there = session_tree(box.far_pids[0])
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            rig.device.open_timing(rig.timing(library_side("replay spin"))) as session,
        ):
            assert not isinstance(session, TimingFailure)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            session.replay((0,))
    finally:
        signal.signal(signal.SIGALRM, before)
    wait_until_gone(there)


def test_a_connection_that_is_lost_with_the_goodbye_loses_nothing(
    rig: _Rig, box: StandInSsh
) -> None:
    with rig.device.open_timing(rig.timing()) as session:
        assert not isinstance(session, TimingFailure)
        replays = session.replay((0,))
        os.kill(box.far_pids[0], signal.SIGKILL)
    assert not isinstance(replays, TimingFailure)
    assert rig.device.execute(rig.execution()).status is Status.PASSED
    assert len(box.connections) == 2


def test_a_lost_session_says_so_and_leaves_no_worker(rig: _Rig, box: StandInSsh) -> None:
    rig.device.execute(rig.execution())
    (far,) = box.far_pids
    there = session_tree(far)
    assert len(there) > 1
    with pytest.raises(TimingLost), rig.device.open_timing(rig.timing()) as session:
        assert not isinstance(session, TimingFailure)
        os.kill(far, signal.SIGKILL)
        session.replay((0,))
    wait_until_gone(there)
    with rig.device.open_timing(rig.timing()) as session:
        assert not isinstance(session, TimingFailure)
    assert len(box.connections) == 2
