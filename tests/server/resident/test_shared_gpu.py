"""The GPU that callers of a resident evaluator share, over workers that play one."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.far.desk import Helpers
from kopt.server.resident.shared_gpu import CallersGpu, SharedGpu
from kopt.server.resident.turns import Visitor
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import TimingFailure
from support.scripted_device import ScriptedDevice, side
from support.shared_caches import share_caches
from support.tiny_problem import write_tiny_problem


def _no_helpers(arch: str) -> dict[str, str]:
    del arch
    return {}


@pytest.fixture
def scripted(tmp_path: Path, shared_caches: Path) -> ScriptedDevice:
    settings = Settings(home=share_caches(tmp_path / "home", shared_caches))
    return ScriptedDevice(settings, load_problem(write_tiny_problem(tmp_path)), tmp_path / "locks")


@pytest.fixture
def shared(scripted: ScriptedDevice) -> Iterator[SharedGpu]:
    def open_here(name: str, *, has_spare: bool, **others: object) -> Device:
        del name, others
        scripted.device = scripted.another(has_spare=has_spare)
        return scripted.device

    with closing(SharedGpu("cuda:0", open_here)) as shared:
        yield shared


def _caller(shared: SharedGpu, *, has_spare: bool = False) -> CallersGpu:
    return shared.for_caller(Visitor("pid 1", ignore), _no_helpers, has_spare=has_spare)


def test_who_hangs_up_before_a_worker_was_asked_leaves_nothing_running(
    scripted: ScriptedDevice, shared: SharedGpu
) -> None:
    early, late, staying = (_caller(shared) for _ in range(3))
    spin = scripted.request("execute spin")
    with shared.turn(early):  # its thread has the turn, and no device yet
        early.close()
        with pytest.raises(InfraError, match="hung up"):
            shared.lend(scripted.device, early)
    with shared.turn(late):  # its thread has the device, and has not used it yet
        shared.lend(scripted.device, late)
        late.close()
        with pytest.raises(InfraError, match="was ended"):
            scripted.device.execute(spin)
    assert staying.execute(scripted.request()).status is Status.PASSED


def test_the_first_call_waits_for_no_second_worker_which_starts_once_it_is_over(
    scripted: ScriptedDevice, shared: SharedGpu
) -> None:
    caller = _caller(shared)
    assert caller.execute(scripted.request()).status is Status.PASSED
    with caller.open_timing(scripted.timing(side())) as session:
        assert not isinstance(session, TimingFailure)
    assert len(scripted.workers) == 1
    caller.close()
    shared.rest()
    assert len(scripted.workers) == 2


@pytest.mark.slow  # workers of its own
def test_second_workers_start_beside_no_measurement_and_none_is_told_of_them(
    scripted: ScriptedDevice, tmp_path: Path
) -> None:
    def open_here(
        name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        del name, helpers
        return scripted.another(told, has_spare=has_spare)

    (tmp_path / "other").mkdir()
    other = load_problem(write_tiny_problem(tmp_path / "other"))
    heard: list[str] = []
    with closing(SharedGpu("cuda:0", open_here)) as shared:
        _caller(shared).execute(scripted.request(problem=other))
        caller = shared.for_caller(Visitor("pid 2", heard.append), _no_helpers, has_spare=False)
        with caller.open_timing(scripted.timing(side())):
            resting = Thread(target=shared.rest)
            resting.start()
            resting.join(10.0)
            assert not resting.is_alive()
            assert len(scripted.workers) == 2
        shared.rest()
        assert len(scripted.workers) == 4
    assert heard == []


def test_a_caller_of_many_candidates_has_a_second_worker_at_once(
    scripted: ScriptedDevice, shared: SharedGpu
) -> None:
    _caller(shared).execute(scripted.request())
    assert len(scripted.workers) == 1
    _caller(shared, has_spare=True).execute(scripted.request())
    assert len(scripted.workers) == 2
