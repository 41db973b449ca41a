"""The simulator as a device: what it takes, in how many processes, and what an ending means."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.config.errors import InfraError
from kopt.kernels.plan import Argument, Launch, Scratch, TensorMap
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionRequest
from kopt.tools.sandbox.policy import SandboxedRun
from kopt.tools.sim import device as sim_device
from kopt.tools.sim.device import SimDevice
from kopt.tools.sim.job_file import JobFile, RunMode, write_job
from kopt.tools.sim.program_facts import SimProgram
from support.sim_run import Sim, SimCase

SOURCE = 'extern "C" __global__ void k(int* out) { out[threadIdx.x] = 1; }'
ENDED = SandboxedRun(
    returncode=0,
    stdout=b"",
    stderr=b"what it said",
    stderr_end=b"",
    timed_out=False,
    stopped=False,
    dropped_bytes=0,
    level="plain",
    elapsed_s=1.0,
)


def _launch(**changes: Any) -> Launch:
    argument = Argument(kind="tensor", name="out")
    fields = {"kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1), "arguments": (argument,)}
    return Launch.model_validate({**fields, **changes})


def _with(launch: Launch, **changes: Any) -> Launch:
    return launch.model_copy(update=changes)


def _refusal(sim: Sim, *launches: Launch, **buffers: Any) -> Diagnostic | None:
    """Return why the device does not take a plan; None if it does."""
    out = np.zeros(32, np.int32)
    case = SimCase(SOURCE, outputs={"out": out}, launches=launches, **buffers)
    outcome = SimDevice(sim.settings, 2).prepare(case.program)
    if outcome is None:
        return None
    assert outcome.status is Status.UNSUPPORTED_ON_SIM
    return outcome.diagnostics[0]


def test_a_plan_may_reach_every_limit_but_not_pass_it(sim: Sim) -> None:
    together = _launch(grid=(64, 1, 1), block=(512, 2, 1), cooperative=True)
    clusters = _launch(grid=((1 << 20) - 64, 1, 1), block=(1024, 1, 1), cluster=(64, 1, 1))
    many = _launch(arguments=together.arguments * 64, grid=(1, 1, 1))
    assert _refusal(sim, together, clusters) is None
    assert _refusal(sim, many) is None
    for launches, words in (
        ((together, clusters, many), "at most 1048576 blocks"),
        ((_with(together, grid=(65, 1, 1)),), "66560 threads that must be resident together"),
        ((_with(clusters, grid=(65, 1, 1), cluster=(65, 1, 1)),), "66560 threads"),
        ((_with(many, arguments=together.arguments * 65),), "passes at most 64"),
        ((_launch(cluster=(1, 1, 2), grid=(1, 1, 2)),), "clusters along x only"),
    ):
        refusal = _refusal(sim, *launches)
        assert refusal is not None
        assert words in refusal.message


def test_tensors_scratch_and_tensor_maps_are_counted_as_buffers(sim: Sim) -> None:
    of_out = {"tensor": "out", "view": (32,), "box": (32,), "element_strides": (1,)}
    maps = tuple(TensorMap.model_validate({"name": f"m{n}", **of_out}) for n in range(24))
    scratch = tuple(Scratch(name=f"s{n}", dtype="int8", shape=(1,)) for n in range(1000))
    assert _refusal(sim, _launch(), scratch=scratch[1:], tensor_maps=maps) is None
    refusal = _refusal(sim, _launch(), scratch=scratch, tensor_maps=maps)
    assert refusal is not None
    assert "this plan has 1025" in refusal.message


def test_buffers_may_take_three_quarters_of_the_memory(
    sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sim_device, "machine_memory_bytes", lambda: 4000)
    full, more = (Scratch(name="tmp", dtype="int8", shape=(2, n)) for n in (1436, 1437))
    assert _refusal(sim, _launch(), scratch=(full,)) is None
    assert _refusal(sim, _launch(), scratch=(more,)) is not None


def test_a_buffer_has_its_part_of_the_arena(sim: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim_device, "machine_memory_bytes", lambda: 1 << 37)
    full, more = (Scratch(name="big", dtype="int8", shape=((56 << 30) + n,)) for n in (0, 1))
    assert _refusal(sim, _launch(), scratch=(full,)) is None
    refusal = _refusal(sim, _launch(), scratch=(more,))
    assert refusal is not None
    assert refusal.message == (
        "tensors and scratch have 60.1 GB, `big` alone 60.1 GB; the simulator holds 103 GB on this"
        " machine"
    )


@pytest.mark.parametrize(
    ("statement", "workers"),
    [("out[t] = 1;", 2), ("atomicAdd(out, 1);", 1), ("out[t] = 1; __threadfence();", 1)],
)
def test_blocks_that_may_talk_to_each_other_run_in_one_process(
    sim: Sim, statement: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[RunMode] = []

    def noted(request: ExecutionRequest, program: SimProgram, to: Path, mode: RunMode) -> JobFile:
        modes.append(mode)
        return write_job(request, program, to, mode)

    monkeypatch.setattr(sim_device, "write_job", noted)
    source = SOURCE.replace("out[threadIdx.x] = 1;", f"const int t = threadIdx.x; {statement}")
    out = {"out": np.zeros(32, np.int32)}
    assert sim.outputs(SimCase(source, outputs=out, inout=frozenset(out)))["out"].any()
    assert modes == [RunMode(workers)]


def _ended(sim: Sim, monkeypatch: pytest.MonkeyPatch, **run: Any) -> tuple[Status, str]:
    """Return what the device makes of the end of a simulator's process."""
    case = SimCase(SOURCE, outputs={"out": np.zeros(32, np.int32)})
    device = SimDevice(sim.settings, 2)
    assert device.prepare(case.program) is None
    ended = replace(ENDED, **run)

    def run_sandboxed(*_: object) -> SandboxedRun:
        return ended

    monkeypatch.setattr(sim_device, "run_sandboxed", run_sandboxed)
    outcome = device.execute(ExecutionRequest(case.program, {}, 0xA5))
    return outcome.status, outcome.diagnostics[0].message


def test_a_simulator_that_does_not_end_is_a_timeout(
    sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = (Status.TIMEOUT, "the simulator did not end within the time limit")
    assert _ended(sim, monkeypatch, timed_out=True, returncode=-9) == told


def test_a_simulator_that_takes_too_much_memory_is_the_kernels_crash(
    sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, message = _ended(sim, monkeypatch, memory_is_up=True, returncode=-9)
    assert status is Status.CRASH
    assert "GiB on the simulator and was stopped" in message


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"stopped": True, "returncode": -15}, "told to stop"),
        ({"returncode": 3}, "ended with status 3: what it said"),
    ],
)
def test_other_ends_say_nothing_of_the_candidate(
    sim: Sim, run: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InfraError, match=words):
        _ended(sim, monkeypatch, **run)
