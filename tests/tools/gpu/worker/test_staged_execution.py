"""What is staged is what is executed next, and nothing else."""

from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch, LaunchPlan
from kopt.kernels.problem import Problem
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import CandidateSide
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.messages import (
    Done,
    ExecuteAnswer,
    ExecuteRequest,
    FaultAnswer,
    StageRequest,
    StartRequest,
)
from kopt.tools.gpu.worker import cuda_engine, execution
from kopt.tools.gpu.worker.context import WorkerContext
from kopt.tools.gpu.worker.cuda_engine import CudaEngine
from support.host_cuda import GPU_UUID, HostCuda, KernelArguments

COUNT = 8 * 64
DTYPES = {"x": "float32", "weight": "bfloat16", "out": "float32"}


class Engine:
    """An engine with a context, whose kernel doubles x."""

    def __init__(self, cuda: HostCuda, problem: Problem, folder: Path) -> None:
        cuda.kernels = {"k": _double, "leftover_local": _nothing, "leftover_shared": _nothing}
        (folder / "any.cubin").write_bytes(b"cubin")
        self.cuda, self.folder, self._problem = cuda, folder, problem
        self._engine = CudaEngine()
        helpers = {"leftovers": str(folder / "any.cubin")}
        self.answer(StartRequest(device_uuid=GPU_UUID, helper_cubins=helpers))

    def request(self, first: float) -> ExecuteRequest:
        """Return an execution on inputs that begin with `first`, in a file of their own."""
        x = np.full((8, 64), first, dtype=np.float32)
        tensors = tuple(Argument(kind="tensor", name=name) for name in DTYPES)
        launch = Launch(kernel="k", grid=(8, 1, 1), block=(64, 1, 1), arguments=tensors)
        plan = LaunchPlan(workload="b8xh64", axes={}, defines={}, launches=(launch,))
        arrays: Arrays = {"x": x, "weight": np.zeros(64, dtype=np.uint16)}
        return ExecuteRequest(
            problem=self._problem,
            workload=self._problem.workload("b8xh64"),
            side=CandidateSide(plan=plan, cubin_path=str(self.folder / "any.cubin")),
            inputs=write_arrays(self.folder, f"inputs{first:g}", arrays.items()),
            poison=0xA5,
        )

    def answer(self, request: StartRequest | StageRequest | ExecuteRequest) -> object:
        """Return the engine's answer."""
        return self._engine.answer(request, self.folder)

    def first_of(self, request: ExecuteRequest) -> float:
        """Execute, and return the first element of the output."""
        answer = self.answer(request)
        assert isinstance(answer, ExecuteAnswer)
        assert answer.damage == ()
        return float(read_arrays(self.folder, answer.outputs, DTYPES)["out"].flat[0])


def _double(arguments: KernelArguments) -> None:
    arguments.array(2, "f4", COUNT)[:] = 2 * arguments.array(0, "f4", COUNT)


def _nothing(arguments: KernelArguments) -> None:
    del arguments


@pytest.fixture
def engine(host_cuda: HostCuda, compile_problem: Problem, tmp_path: Path) -> Engine:
    return Engine(host_cuda, compile_problem, tmp_path)


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[ExecuteRequest]:
    """Note what is staged."""
    noted: list[ExecuteRequest] = []

    def note(
        request: ExecuteRequest, folder: Path, worker: WorkerContext
    ) -> execution.StagedExecution:
        noted.append(request)
        return execution.stage(request, folder, worker)

    monkeypatch.setattr(cuda_engine, "stage", note)
    return noted


def test_what_was_staged_is_executed_and_not_made_again(
    engine: Engine, staged: list[ExecuteRequest]
) -> None:
    request = engine.request(3.0)
    assert engine.answer(StageRequest(execution=request)) == Done()
    assert engine.cuda.launched == []
    assert engine.first_of(request) == 6.0
    assert staged == [request]


def test_an_execution_of_something_else_has_its_own_inputs(
    engine: Engine, staged: list[ExecuteRequest]
) -> None:
    one, other = engine.request(3.0), engine.request(5.0)
    engine.answer(StageRequest(execution=one))
    assert engine.first_of(other) == 10.0
    assert engine.first_of(one) == 6.0
    assert staged == [one, other, one]


def test_what_was_staged_is_executed_once(engine: Engine, staged: list[ExecuteRequest]) -> None:
    request = engine.request(3.0)
    engine.answer(StageRequest(execution=request))
    assert [engine.first_of(request), engine.first_of(request)] == [6.0, 6.0]
    assert staged == [request, request]


def test_memory_of_what_is_never_executed_is_used_again(engine: Engine) -> None:
    for first in (1.0, 2.0, 3.0):
        engine.answer(StageRequest(execution=engine.request(first)))
    assert len(engine.cuda.pinned) == 2  # one image that goes to the device, one that comes back


def test_what_the_device_has_no_memory_for_is_told_before_the_host_makes_images(
    engine: Engine,
) -> None:
    engine.cuda.memory_bytes = 1000
    request = engine.request(3.0)
    for asked in (StageRequest(execution=request), request):
        answer = engine.answer(asked)
        assert isinstance(answer, FaultAnswer)
        assert (answer.fault.during, answer.fault.sticky) == ("allocate", False)
        assert not engine.cuda.pinned
    engine.cuda.memory_bytes = 1 << 30
    assert engine.first_of(request) == 6.0
