"""One call over exact, separate buffers, on a stand-in for the driver."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch, LaunchPlan, Scratch
from kopt.kernels.problem import Problem
from kopt.tools.gpu.array_file import write_arrays
from kopt.tools.gpu.one_shot_files import (
    CUBIN_FILE,
    INPUTS_FILE,
    REQUEST_FILE,
    OneShotAnswer,
    OneShotRequest,
    read_answer,
)
from kopt.tools.gpu.worker.one_shot import main
from support.host_cuda import GPU_UUID, CUresult, DeviceFault, HostCuda, KernelArguments

COUNT = 8 * 64
PLAN = LaunchPlan(
    workload="b8xh64",
    axes={},
    defines={},
    launches=(
        Launch(
            kernel="k",
            grid=(8, 1, 1),
            block=(64, 1, 1),
            arguments=(
                Argument(kind="tensor", name="x"),
                Argument(kind="tensor", name="out"),
                Argument(kind="scratch", name="sums"),
            ),
        ),
    ),
    scratch=(Scratch(name="sums", dtype="float32", shape=(8,), init="zero"),),
)


class Rig:
    """A request in a folder."""

    def __init__(self, cuda: HostCuda, problem: Problem, folder: Path) -> None:
        self.cuda = cuda
        self.folder = folder
        self._problem = problem
        self.x = np.arange(COUNT, dtype=np.float32).reshape(8, 64)

    def run(self) -> OneShotAnswer | None:
        """Run the child in this process."""
        weight = np.ones(64, dtype=ml_dtypes.bfloat16)
        inputs = write_arrays(self.folder, INPUTS_FILE, {"x": self.x, "weight": weight}.items())
        request = OneShotRequest(
            device_uuid=GPU_UUID,
            problem=self._problem,
            workload=self._problem.workload("b8xh64"),
            plan=PLAN,
            inputs=inputs,
        )
        (self.folder / CUBIN_FILE).write_bytes(b"cubin")
        (self.folder / REQUEST_FILE).write_text(request.model_dump_json())
        assert main(self.folder) == 0
        return read_answer(self.folder)


@pytest.fixture
def rig(host_cuda: HostCuda, compile_problem: Problem, tmp_path: Path) -> Rig:
    return Rig(host_cuda, compile_problem, tmp_path)


def test_every_buffer_is_an_allocation_of_its_exact_size(rig: Rig) -> None:
    rig.cuda.kernels = {"k": lambda _: None}
    sizes: list[int] = []
    allocate = rig.cuda.cuMemAlloc

    def counted(size_bytes: int) -> tuple[object, ...]:
        sizes.append(size_bytes)
        return allocate(size_bytes)

    rig.cuda.cuMemAlloc = counted  # type: ignore[method-assign]
    answer = rig.run()
    assert answer is not None
    assert sizes == [4 * COUNT, 2 * 64, 4 * COUNT, 4 * 8]
    assert {b.name: b.size_bytes for b in answer.buffers} == dict(
        zip(("x", "weight", "out", "sums"), sizes, strict=True)
    )


def test_kernel_gets_inputs_and_zeroed_scratch_at_the_addresses_told(rig: Rig) -> None:
    seen: list[tuple[float, float]] = []

    def kernel(arguments: KernelArguments) -> None:
        x = arguments.array(0, "float32", COUNT)
        sums = arguments.array(2, "float32", 8)
        seen.append((float(x.sum()), float(sums.sum())))
        addresses.append(int.from_bytes(arguments.raw(1, 8), "little"))

    addresses: list[int] = []
    rig.cuda.kernels = {"k": kernel}
    answer = rig.run()
    assert answer is not None
    assert (answer.ended, answer.fault) == (True, None)
    assert seen == [(float(rig.x.sum()), 0.0)]
    assert addresses == [b.address for b in answer.buffers if b.name == "out"]


def test_outputs_stay_uninitialized(rig: Rig) -> None:
    rig.cuda.kernels = {"k": lambda _: None}
    filled: list[int] = []
    fill = rig.cuda.cuMemsetD8Async

    def counted(address: int, byte: int, size: int, _: int) -> tuple[object, ...]:
        filled.append(size)
        return fill(address, byte, size, _)

    rig.cuda.cuMemsetD8Async = counted  # type: ignore[method-assign]
    rig.run()
    assert filled == [4 * 8]  # the scratch that asks for zeros, and nothing else


def test_fault_is_told_with_the_buffers(rig: Rig) -> None:
    def fault(_: KernelArguments) -> None:
        raise DeviceFault

    rig.cuda.kernels = {"k": fault}
    answer = rig.run()
    assert answer is not None
    assert not answer.ended
    assert len(answer.buffers) == 4
    assert answer.fault is not None
    assert answer.fault.code == CUresult.CUDA_ERROR_ILLEGAL_ADDRESS.name


def test_buffers_are_told_before_the_first_launch(rig: Rig) -> None:
    told: list[OneShotAnswer | None] = []
    rig.cuda.kernels = {"k": lambda _: told.append(read_answer(rig.folder))}
    rig.run()
    assert told[0] is not None
    assert (len(told[0].buffers), told[0].ended) == (4, False)
