"""Outputs that kopt's end of a timing session hands out: they stand, and their file is used again.

The worker is the real one on the stand-in for the driver, in this process.
"""

import os
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from kopt.kernels.problem import Problem
from kopt.tools.devices.timer import SetOutputs, TimingRequest
from kopt.tools.gpu.array_file import write_arrays
from kopt.tools.gpu.messages import (
    Answer,
    CloseTimingRequest,
    CollectRequest,
    Done,
    Failed,
    OpenTimingAnswer,
    OpenTimingRequest,
    Request,
)
from kopt.tools.gpu.timing_session import WorkerTimingSession
from kopt.tools.gpu.worker.timing import TimingEnd, open_timing
from kopt.tools.gpu.worker_process import WorkerProcess
from support.host_cuda import memory_at
from support.host_timing import HostTimingCuda
from support.timing_rig import COUNT, POISON, SETS, TimingRig


class _NearWorker:
    """Answers as a worker process does."""

    level = "none"

    def __init__(self, rig: TimingRig) -> None:
        self.folder = rig.folder
        self.end: TimingEnd | None = None
        self._rig = rig

    def ask(self, request: Request, timeout_s: float) -> Answer:
        """Answer at once."""
        del timeout_s
        match request:
            case OpenTimingRequest():
                self.end = open_timing(request, self.folder, self._rig.worker)
                return OpenTimingAnswer(facts=self.end.facts)
            case CollectRequest():
                assert self.end is not None
                return self.end.collect(self.folder, request.places)
            case CloseTimingRequest():
                assert self.end is not None
                self.end.close()
                return Done()
            case _:
                return Failed(message=request.kind)


@pytest.fixture
def rig(host_timing: HostTimingCuda, compile_problem: Problem, tmp_path: Path) -> TimingRig:
    """A worker on the stand-in."""
    return TimingRig(host_timing, compile_problem, tmp_path)


@pytest.fixture
def worker(rig: TimingRig) -> _NearWorker:
    """In this process."""
    return _NearWorker(rig)


def _session(rig: TimingRig, worker: _NearWorker) -> WorkerTimingSession:
    request = TimingRequest(
        problem=rig.problem,
        workload=rig.problem.workload("b8xh64"),
        sides=(rig.side(),),
        inputs=rig.inputs,
        poison=POISON,
        layout_seed=1,
    )
    inputs = write_arrays(worker.folder, "inputs", rig.inputs.items())
    session = WorkerTimingSession(cast(WorkerProcess, worker), request, inputs)
    assert session.open() is None
    return session


def _collect(session: WorkerTimingSession, places: tuple[int, ...] | None = None) -> SetOutputs:
    collected = session.collect(places)
    assert isinstance(collected, SetOutputs)
    return collected


def _spoil(worker: _NearWorker) -> None:
    """Change the outputs of all sets, as another replay may."""
    assert worker.end is not None
    for place in range(SETS):
        address = worker.end.sets.tensor_addresses(place)["out"]
        memory_at(address, "f4", COUNT)[:] = -1


def test_outputs_of_every_set_are_those_of_its_rotation(
    rig: TimingRig, worker: _NearWorker
) -> None:
    collected = _collect(_session(rig, worker))
    assert len(collected.rotations) == SETS
    for rotation, outputs in zip(collected.rotations, collected.outputs, strict=True):
        for name, right in rig.rotated(rotation).items():
            np.testing.assert_array_equal(outputs[name], right)


def test_outputs_in_use_do_not_follow_a_later_collect(rig: TimingRig, worker: _NearWorker) -> None:
    session = _session(rig, worker)
    early = _collect(session, (0, 1))
    _spoil(worker)
    late = _collect(session)
    np.testing.assert_array_equal(early.outputs[1]["out"], rig.rotated(early.rotations[1])["out"])
    assert (late.outputs[1]["out"] == -1).all()


def test_outputs_in_use_do_not_follow_a_later_session(rig: TimingRig, worker: _NearWorker) -> None:
    session = _session(rig, worker)
    early = _collect(session)
    assert session.close()
    following = _session(rig, worker)
    _spoil(worker)
    _collect(following)
    np.testing.assert_array_equal(early.outputs[0]["out"], rig.rotated(early.rotations[0])["out"])


def test_a_file_whose_outputs_nobody_holds_is_used_again(
    rig: TimingRig, worker: _NearWorker
) -> None:
    session = _session(rig, worker)
    _collect(session)
    (path,) = worker.folder.glob("*outputs*")
    with path.open("rb") as first:  # a new file gets another number while this one is open
        inode = os.fstat(first.fileno()).st_ino
        _collect(session, (3,))
        assert path.stat().st_ino == inode
        assert session.close()
        _collect(_session(rig, worker))
        assert path.stat().st_ino == inode
