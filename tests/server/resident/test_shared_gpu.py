"""The GPU that callers of a resident evaluator share, over workers that play one."""

from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.resident.shared_gpu import CallersGpu, SharedGpu
from kopt.server.resident.turns import Visitor
from kopt.tools.devices.device import Device
from support.scripted_device import ScriptedDevice
from support.shared_caches import share_caches
from support.tiny_problem import write_tiny_problem


def _no_helpers(arch: str) -> dict[str, str]:
    del arch
    return {}


def test_who_hangs_up_before_a_worker_was_asked_leaves_nothing_running(
    tmp_path: Path, shared_caches: Path
) -> None:
    settings = Settings(home=share_caches(tmp_path / "home", shared_caches))
    problem = load_problem(write_tiny_problem(tmp_path))
    scripted = ScriptedDevice(settings, problem, tmp_path / "locks")

    def open_here(*_: object, **__: object) -> Device:
        return scripted.device

    shared = SharedGpu("cuda:0", open_here)

    def caller() -> CallersGpu:
        return shared.for_caller(Visitor("pid 1", ignore), _no_helpers)

    early, late, staying = caller(), caller(), caller()
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
    shared.close()
