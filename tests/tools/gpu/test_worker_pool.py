"""When a worker process is replaced, and by what."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, SetupError
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.bench.plain_copy import FOLDER
from kopt.tools.devices.timer import TimingFailure
from kopt.tools.gpu import worker_pool
from kopt.tools.gpu.worker_process import WorkerProcess
from support.scripted_device import ScriptedDevice, library_side, side
from support.scripted_engine import BROKEN_ENGINE

pytestmark = pytest.mark.slow  # worker processes and their spares


def alive(scripted: ScriptedDevice) -> list[int]:
    """Return the places of the workers that live, in the order in which they were made."""
    return [place for place, worker in enumerate(scripted.workers) if worker.is_alive]


def test_one_worker_serves_many_candidates(scripted: ScriptedDevice) -> None:
    before = scripted.identity()
    for number in range(20):
        assert scripted.execute(f"candidate {number}").status is Status.PASSED
    assert scripted.identity() == before


def test_worker_is_replaced_after_its_share_of_candidates(
    scripted: ScriptedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "MAX_PROGRAMS", 3)
    identities = [scripted.identity()]
    for number in range(2):
        scripted.execute(f"candidate {number}")
        identities.append(scripted.identity())  # the same candidate counts once
    assert len(set(identities)) == 1
    scripted.execute("candidate 2")
    assert scripted.identity() != identities[0]


def test_another_problem_gets_another_worker_and_spare(
    scripted: ScriptedDevice, compile_problem: Problem, tmp_path: Path
) -> None:
    other = compile_problem.model_copy(update={"folder": tmp_path})
    scripted.execute()
    scripted.device.execute(scripted.request(problem=other))
    folders = [folder for folder, _ in scripted.kinds]
    assert folders == [compile_problem.folder] * 2 + [tmp_path] * 2
    scripted.device.close()
    assert alive(scripted) == []


def test_the_plain_copy_leaves_the_worker_of_the_problem_that_it_is_timed_beside(
    scripted: ScriptedDevice, compile_problem: Problem
) -> None:
    packaged = compile_problem.model_copy(update={"folder": FOLDER, "baselines": ()})
    before = scripted.identity()
    scripted.device.execute(scripted.request(problem=packaged))
    with scripted.device.open_timing(replace(scripted.timing(side()), problem=packaged)) as session:
        assert not isinstance(session, TimingFailure)
    assert scripted.identity() == before


def test_library_side_makes_spares_that_import_libraries_early(scripted: ScriptedDevice) -> None:
    scripted.execute()
    scripted.run_library()
    scripted.execute()
    # The worker at hand goes on: its late import is over; only its successor is made anew.
    assert [early for _, early in scripted.kinds] == [False, False, True]


def test_library_side_in_a_timing_counts_as_well(scripted: ScriptedDevice) -> None:
    with scripted.device.open_timing(scripted.timing(side(), library_side())) as session:
        assert not isinstance(session, TimingFailure)
    assert [early for _, early in scripted.kinds] == [True, True]


def test_worker_that_needs_no_problem_is_whichever_is_there(scripted: ScriptedDevice) -> None:
    scripted.execute()
    scripted.device.copy_ceiling_gb_s()
    assert len(scripted.workers) == 2


def test_spare_that_fails_is_replaced_when_it_is_needed(scripted: ScriptedDevice) -> None:
    scripted.execute()
    scripted.workers[1].end()  # the spare, perhaps in the middle of its start
    scripted.workers[0].end()
    assert scripted.execute().status is Status.PASSED


def test_close_leaves_no_process_and_no_folder(scripted: ScriptedDevice) -> None:
    scripted.execute()
    scripted.device.close()  # the spare may be starting
    assert alive(scripted) == []
    assert [worker.folder.exists() for worker in scripted.workers] == [False, False]


def test_closed_device_starts_no_worker_again(scripted: ScriptedDevice) -> None:
    scripted.execute()
    scripted.device.close()
    with pytest.raises(InfraError, match="closed"):
        scripted.execute()
    assert alive(scripted) == []


def test_close_before_anything_was_started_is_nothing(scripted: ScriptedDevice) -> None:
    scripted.device.close()
    assert scripted.workers == []


def test_engine_that_cannot_be_made_is_said_and_leaves_nothing(scripted: ScriptedDevice) -> None:
    scripted.engine = BROKEN_ENGINE
    with pytest.raises(SetupError, match="no such library"):
        scripted.execute()
    assert alive(scripted) == []


def test_timing_begins_once_the_spare_has_started(
    scripted: ScriptedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[WorkerProcess] = []
    start = WorkerProcess.start

    def record_start(worker: WorkerProcess) -> None:
        start(worker)
        started.append(worker)

    monkeypatch.setattr(WorkerProcess, "start", record_start)
    scripted.execute()
    with scripted.device.open_timing(scripted.timing(side())):
        assert started == scripted.workers


def test_a_pool_without_a_spare_replaces_a_worker_all_the_same(scripted: ScriptedDevice) -> None:
    scripted.device = scripted.another(has_spare=False)
    for _ in range(2):
        scripted.execute()
        assert scripted.run_library().status is Status.PASSED
    assert len(scripted.workers) == 1
    scripted.workers[0].end()
    assert scripted.execute().status is Status.PASSED
    assert len(scripted.workers) == 2
