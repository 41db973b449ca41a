"""One checked execution on a stand-in for the driver, whose kernels are Python functions."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kopt.config.errors import InfraError
from kopt.kernels.plan import Argument, Launch, LaunchPlan, Scratch
from kopt.kernels.problem import Problem
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import CandidateSide
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.messages import BufferDamage, ExecuteAnswer, ExecuteRequest, OpenedGpu
from kopt.tools.gpu.worker.buffers import STALE_POISON
from kopt.tools.gpu.worker.context import WorkerContext
from kopt.tools.gpu.worker.driver import Stream
from kopt.tools.gpu.worker.execution import execute, stage
from kopt.tools.gpu.worker.failure import ExecutionFailure
from kopt.tools.gpu.worker.launcher import LaunchDevice, PlanCache
from support.host_cuda import (
    GPU_UUID,
    SM_COUNT,
    CUresult,
    DeviceFault,
    HostCuda,
    KernelArguments,
    memory_at,
)

POISON = 0xA5
COUNT = 8 * 64
DTYPES = {"x": "float32", "weight": "bfloat16", "out": "float32"}
TENSORS = tuple(Argument(kind="tensor", name=name) for name in DTYPES)
LAUNCH = Launch(kernel="k", grid=(8, 1, 1), block=(64, 1, 1), arguments=TENSORS)


class Rig:
    """A worker on the stand-in, and a request to it."""

    def __init__(self, cuda: HostCuda, problem: Problem, folder: Path) -> None:
        """Give the worker a kernel that doubles `x`."""
        cuda.kernels = {"k": double, "late_producer": bring}
        cuda.kernels |= {"leftover_local": self.note, "leftover_shared": self.note}
        self.left: list[tuple[bytes, int]] = []
        """Word and count of each launch that left something."""
        self.cuda = cuda
        self.folder = folder
        self.plan = LaunchPlan(workload="b8xh64", axes={}, defines={}, launches=(LAUNCH,))
        (folder / "any.cubin").write_bytes(b"cubin")
        device = LaunchDevice(Stream(5), SM_COUNT)
        helpers = {name: str(folder / "any.cubin") for name in ("late_producer", "leftovers")}
        self.worker = WorkerContext(FACTS, device.stream, PlanCache(device), helpers)
        self._problem = problem
        random = np.random.default_rng(1)
        self.inputs: Arrays = {
            "x": random.standard_normal((8, 64), dtype=np.float32),
            "weight": random.standard_normal(64).astype(ml_dtypes.bfloat16),
        }

    def note(self, arguments: KernelArguments) -> None:
        """Note what is left."""
        count = int.from_bytes(arguments.raw(1, 4), "little")
        self.left.append((arguments.raw(0, 4), count))

    @property
    def launched(self) -> list[str]:
        """The kernels launched so far, in order."""
        return [name for name, _ in self.cuda.launched]

    def execute(
        self, *, late: bool = False, poison: int = POISON, finds_leftovers: bool = False
    ) -> ExecuteAnswer:
        """Execute the plan once."""
        request = ExecuteRequest(
            problem=self._problem,
            workload=self._problem.workload("b8xh64"),
            side=CandidateSide(plan=self.plan, cubin_path=str(self.folder / "any.cubin")),
            inputs=write_arrays(self.folder, "inputs", self.inputs.items()),
            poison=poison,
            late_producer=late,
            finds_leftovers=finds_leftovers,
        )
        return execute(stage(request, self.folder, self.worker), self.folder, self.worker)

    def outputs(self, answer: ExecuteAnswer) -> Arrays:
        """Return the outputs of an execution without a fault."""
        return read_arrays(self.folder, answer.outputs, DTYPES)


LEFT = ["leftover_local", "leftover_shared"]
FACTS = OpenedGpu(index=0, uuid=GPU_UUID, sm_count=SM_COUNT, l2_bytes=1 << 20)


def double(arguments: KernelArguments) -> None:
    """Write out = 2 x."""
    arguments.array(2, "f4", COUNT)[:] = 2 * arguments.array(0, "f4", COUNT)


def bring(arguments: KernelArguments) -> None:
    """Do what late_producer.cu does, without the delay."""
    count, _, source, target, size = np.frombuffer(arguments.raw(0, 40), dtype="u8").tolist()
    assert count == 1
    memory_at(target, "u1", size)[:] = memory_at(source, "u1", size)


@pytest.fixture
def rig(host_cuda: HostCuda, compile_problem: Problem, tmp_path: Path) -> Rig:
    """A worker on the stand-in."""
    return Rig(host_cuda, compile_problem, tmp_path)


def test_a_good_kernel_gives_its_outputs_and_no_damage(rig: Rig) -> None:
    answer = rig.execute()
    assert answer.damage == ()
    outputs = rig.outputs(answer)
    assert list(outputs) == ["out"]
    np.testing.assert_array_equal(outputs["out"], 2 * rig.inputs["x"])


def test_an_output_that_is_not_written_holds_the_poison(rig: Rig) -> None:
    rig.cuda.kernels["k"] = lambda _: None
    out = rig.outputs(rig.execute())["out"]
    assert (out.view(np.uint8) == POISON).all()


def test_what_a_kernel_does_not_write_is_left_with_the_poison_of_the_call(rig: Rig) -> None:
    for poison in (0xFF, 0x55):
        rig.execute(poison=poison)
    assert rig.launched == [*LEFT, "k"] * 2
    local, shared = (256, 4096 // 4)
    words = [bytes([poison]) * 4 for poison in (0xFF, 0x55)]
    assert rig.left == [(word, count) for word in words for count in (local, shared)]
    (_, local_config), (_, shared_config), _ = rig.cuda.launched[:3]
    assert (local_config.gridDimX, local_config.blockDimX) == (2 * SM_COUNT, 1024)
    assert (shared_config.gridDimX, shared_config.sharedMemBytes) == (SM_COUNT, 4096)


def test_launches_of_a_plan_find_nothing_of_one_another_unless_they_overlap(rig: Rig) -> None:
    rig.cuda.kernels |= {"second": double, "third": double}
    second = LAUNCH.model_copy(update={"kernel": "second"})
    third = LAUNCH.model_copy(update={"kernel": "third", "pdl": True})
    rig.plan = rig.plan.model_copy(update={"launches": (LAUNCH, second, third)})
    rig.execute()
    assert rig.launched == [*LEFT, "k", *LEFT, "second", "third"]


def test_a_call_that_finds_leftovers_follows_what_was_there(rig: Rig) -> None:
    rig.execute(finds_leftovers=True)
    assert rig.launched == ["k"]


def test_a_refusal_of_kopts_own_kernel_is_not_the_candidates(rig: Rig) -> None:
    rig.cuda.refused["leftover_local"] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(InfraError, match="kopt's own kernel"):
        rig.execute()


def test_a_byte_behind_an_output_is_damage(rig: Rig) -> None:
    def overrun(arguments: KernelArguments) -> None:
        double(arguments)
        arguments.array(2, "u1", 4 * COUNT + 1)[-1] ^= 1  # guards are random

    rig.cuda.kernels["k"] = overrun
    (damage,) = rig.execute().damage
    assert (damage.buffer, damage.where, damage.first_byte) == ("out", "after", 0)


def test_a_changed_input_is_damage(rig: Rig) -> None:
    def mutate(arguments: KernelArguments) -> None:
        double(arguments)
        arguments.array(1, "u1", 128)[126:] ^= 1

    rig.cuda.kernels["k"] = mutate
    expected = BufferDamage(buffer="weight", where="inside", first_byte=126, changed_bytes=2)
    assert rig.execute().damage == (expected,)


def test_a_kernel_that_breaks_the_context_is_a_sticky_fault(rig: Rig) -> None:
    def crash(arguments: KernelArguments) -> None:
        del arguments
        raise DeviceFault

    rig.cuda.kernels["k"] = crash
    with pytest.raises(ExecutionFailure) as caught:
        rig.execute()
    answer = caught.value
    assert (answer.fault.during, answer.fault.sticky) == ("run", True)
    assert answer.fault.code == "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_a_refused_launch_does_not_hide_what_an_earlier_one_did(rig: Rig) -> None:
    def crash(arguments: KernelArguments) -> None:
        del arguments
        raise DeviceFault

    rig.cuda.kernels |= {"k": crash, "second": double}
    rig.cuda.refused["second"] = CUresult.CUDA_ERROR_INVALID_VALUE
    second = LAUNCH.model_copy(update={"kernel": "second"})
    rig.plan = rig.plan.model_copy(update={"launches": (LAUNCH, second)})
    with pytest.raises(ExecutionFailure) as caught:
        rig.execute()
    answer = caught.value
    assert (answer.fault.during, answer.fault.launch) == ("run", None)
    assert answer.fault.code == "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_too_little_memory_is_a_fault_that_the_worker_survives(rig: Rig) -> None:
    rig.cuda.memory_bytes = 1000
    with pytest.raises(ExecutionFailure) as caught:
        rig.execute()
    answer = caught.value
    assert (answer.fault.during, answer.fault.sticky) == ("allocate", False)
    rig.cuda.memory_bytes = 1 << 30
    rig.execute()


def test_nothing_of_an_earlier_execution_is_left_in_the_memory(rig: Rig) -> None:
    size_bytes = 1 << 20
    memory = memory_at(rig.worker.arena.reserve(size_bytes), "u1", size_bytes)
    memory[:] = 0x77  # as new page-locked memory of the stand-in is
    scratch = (Scratch(name="partial", dtype="float32", shape=(2000,), init="poison"),)
    rig.plan = rig.plan.model_copy(update={"scratch": scratch})
    found: list[bytes] = []
    rig.cuda.kernels["k"] = lambda _: found.append(memory.tobytes())
    rig.execute()
    assert b"\x77" * 16 not in found[0]
    assert rig.inputs["x"].tobytes() in found[0]


def test_nothing_of_an_execution_is_left_in_the_memory_behind_it(rig: Rig) -> None:
    assert rig.execute().outputs is not None
    size_bytes = rig.worker.arena.size_bytes
    memory = memory_at(rig.worker.arena.reserve(size_bytes), "u1", size_bytes)
    assert (memory == POISON).all()


def test_a_late_producer_brings_every_input_but_the_static_ones(rig: Rig) -> None:
    before: list[bytes] = []

    def note_and_bring(arguments: KernelArguments) -> None:
        _, _, _, target, size = np.frombuffer(arguments.raw(0, 40), dtype="u8").tolist()
        before.append(memory_at(target, "u1", size).tobytes())
        bring(arguments)

    rig.cuda.kernels["late_producer"] = note_and_bring
    answer = rig.execute(late=True)
    assert before == [bytes([POISON]) * rig.inputs["x"].nbytes]
    assert rig.launched == [*LEFT, "late_producer", "k"]
    _, config = rig.cuda.launched[2]
    assert (config.gridDimY, config.gridDimZ, config.blockDimY, config.blockDimZ) == (1, 1, 1, 1)
    assert answer.damage == ()
    np.testing.assert_array_equal(rig.outputs(answer)["out"], 2 * rig.inputs["x"])


def test_what_lies_there_before_the_producer_may_look_like_inputs(rig: Rig) -> None:
    before: list[bytes] = []

    def note_and_bring(arguments: KernelArguments) -> None:
        _, _, _, target, size = np.frombuffer(arguments.raw(0, 40), dtype="u8").tolist()
        before.append(memory_at(target, "u1", size).tobytes())
        bring(arguments)

    rig.cuda.kernels["late_producer"] = note_and_bring
    answer = rig.execute(late=True, poison=STALE_POISON)
    stale, given = np.frombuffer(before[0], dtype=np.float32), rig.inputs["x"].reshape(-1)
    np.testing.assert_array_equal(np.sort(stale), np.sort(given))
    assert (stale != given).all()
    np.testing.assert_array_equal(rig.outputs(answer)["out"], 2 * rig.inputs["x"])


def test_no_fill_comes_between_the_late_producer_and_the_plan(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = (Scratch(name="partial", dtype="float32", shape=(8,), init="zero"),)
    rig.plan = rig.plan.model_copy(update={"scratch": scratch})
    launches_before_fill: list[int] = []
    fill = rig.cuda.cuMemsetD8Async

    def note_and_fill(address: int, byte: int, size: int, stream: int) -> tuple[object, ...]:
        launches_before_fill.append(len(rig.cuda.launched))
        return fill(address, byte, size, stream)

    monkeypatch.setattr(rig.cuda, "cuMemsetD8Async", note_and_fill)
    rig.execute(late=True)
    assert launches_before_fill == [0, 4]  # zeroed before all, wiped behind all


def test_an_input_that_no_producer_brings_is_seen_as_poison(rig: Rig) -> None:
    rig.cuda.kernels["late_producer"] = lambda _: None
    answer = rig.execute(late=True)
    assert [damage.buffer for damage in answer.damage] == ["x"]
    poison = np.full((8, 64), POISON * 0x01010101, dtype=np.uint32).view(np.float32)
    np.testing.assert_array_equal(rig.outputs(answer)["out"], 2 * poison)
