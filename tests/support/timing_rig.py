"""A worker on the stand-in for the driver, with requests to it that open timing sessions.

The problem is sum += x, out = sum * scale: an input, an in-place operand, an output and a weight.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.plan import Argument, Launch, LaunchPlan, Scratch
from kopt.kernels.problem import Problem, TensorSpec
from kopt.kernels.row_rotation import rotate_outputs
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import CandidateSide, EmptySide, Side
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.draw_names import named_draws
from kopt.tools.gpu.messages import CollectAnswer, OpenedGpu, OpenTimingRequest
from kopt.tools.gpu.worker.context import WorkerContext
from kopt.tools.gpu.worker.driver import Stream
from kopt.tools.gpu.worker.launcher import LaunchDevice, PlanCache
from kopt.tools.gpu.worker.timing import TimingEnd, open_timing

from .host_cuda import GPU_UUID, SM_COUNT, KernelArguments
from .host_timing import HostTimingCuda

POISON = 0xA5
ROWS, COLUMNS = 8, 64
COUNT = ROWS * COLUMNS
TENSORS = (
    TensorSpec(name="out", role="out", dtype="float32", shape=("B", "H")),
    TensorSpec(name="x", role="in", dtype="float32", shape=("B", "H")),
    TensorSpec(name="sum", role="inout", dtype="float32", shape=("B", "H")),
    TensorSpec(name="scale", role="in", dtype="float32", shape=()),
)
ARGUMENTS = tuple(Argument(kind="tensor", name=tensor.name) for tensor in TENSORS)
SET_BYTES = 3 * COUNT * 4 + 4
L2_BYTES = 4 * SET_BYTES  # 16 sets hold four times as much
SETS = 16
FACTS = OpenedGpu(index=0, uuid=GPU_UUID, sm_count=SM_COUNT, l2_bytes=L2_BYTES)


def floats(arguments: KernelArguments, ordinal: int, count: int = COUNT) -> npt.NDArray[Any]:
    """Return the floats that an argument points to."""
    return arguments.array(ordinal, "f4", count)


def accumulate(arguments: KernelArguments) -> None:
    """Do sum += x, out = sum * scale."""
    floats(arguments, 2)[:] += floats(arguments, 1)
    floats(arguments, 0)[:] = floats(arguments, 2) * floats(arguments, 3, 1)[0]


def do_nothing(_: KernelArguments) -> None:
    """Do as an empty kernel does."""


class TimingRig:
    """A worker on the stand-in, and requests to it."""

    def __init__(self, cuda: HostTimingCuda, problem: Problem, folder: Path) -> None:
        """Give the worker a good kernel `k`, a kernel `lazy` without a body, and kopt's own."""
        cuda.kernels = {"k": accumulate, "lazy": do_nothing, "empty_kernel": do_nothing}
        self.cuda = cuda
        self.folder = folder
        self.cubin = folder / "any.cubin"
        self.cubin.write_bytes(b"cubin")
        self.problem = problem.model_copy(update={"tensors": TENSORS})
        device = LaunchDevice(Stream(5), SM_COUNT)
        helpers = {"empty_kernel": str(self.cubin)}
        self.worker = WorkerContext(FACTS, device.stream, PlanCache(device), helpers)
        random = np.random.default_rng(1)
        self.inputs: Arrays = {
            "x": random.integers(0, 99, (ROWS, COLUMNS)).astype(np.float32),
            "sum": random.integers(0, 99, (ROWS, COLUMNS)).astype(np.float32),
            "scale": np.array(2.0, dtype=np.float32),
        }
        self.draws = [self.inputs]
        """Further ones are of a problem without rows."""
        total = self.inputs["x"] + self.inputs["sum"]
        self.expected: Arrays = {"out": 2 * total, "sum": total}

    def side(
        self, kernel: str = "k", launches: int = 1, scratch: tuple[Scratch, ...] = ()
    ) -> CandidateSide:
        """Return a candidate of one kernel, launched once or several times.

        Its arguments are the tensors, then the scratch buffers.
        """
        own = tuple(Argument(kind="scratch", name=buffer.name) for buffer in scratch)
        launch = Launch(
            kernel=kernel, grid=(8, 1, 1), block=(64, 1, 1), arguments=(*ARGUMENTS, *own)
        )
        plan = LaunchPlan(
            workload="w", axes={}, defines={}, launches=(launch,) * launches, scratch=scratch
        )
        return CandidateSide(plan=plan, cubin_path=str(self.cubin))

    def empty_side(self) -> EmptySide:
        """Return empty kernels in the shape of `side()`."""
        return EmptySide(plan=self.side().plan)

    def session(self, *sides: Side, seed: int = 3) -> TimingEnd:
        """Open a session."""
        workload = self.problem.workload("b8xh64")
        request = OpenTimingRequest(
            problem=self.problem,
            workload=workload,
            sides=sides,
            inputs=write_arrays(self.folder, "inputs", named_draws(self.draws).items()),
            poison=POISON,
            layout_seed=seed,
            warmup_calls=40,
            draws=len(self.draws),
        )
        return open_timing(request, self.folder, self.worker)

    def collected(
        self, end: TimingEnd, places: Sequence[int] | None = None
    ) -> tuple[CollectAnswer, list[Arrays]]:
        """Return what the last replay left, set by set."""
        answer = end.collect(self.folder, places)
        sets = range(len(answer.rotations))
        names = {f"{k}/{name}": "float32" for k in sets for name in ("out", "sum")}
        arrays = read_arrays(self.folder, answer.outputs, names)
        return answer, [{name: arrays[f"{k}/{name}"] for name in ("out", "sum")} for k in sets]

    def rotated(self, shift: int) -> Arrays:
        """Return the right outputs of a set."""
        axes = self.problem.workload("b8xh64").axes
        return rotate_outputs(self.problem, axes, self.expected, shift)
