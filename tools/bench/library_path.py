"""One way through a library: run, judged as a candidate is, and accepted or rejected.

No list says what works on which device. A path whose output keeps the poison, or is wrong, is
rejected here, whatever it returned.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy.typing as npt

from kopt.config.gpu_specs import GpuSpec
from kopt.config.plain_text import plain
from kopt.kernels.bench_result import BaselinePath, RejectedBaseline
from kopt.kernels.candidate import Candidate
from kopt.kernels.layouts import sf_128x4_offsets
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import TensorSpec, Workload, storage_shape, tensor_shape
from kopt.kernels.status import Status
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.run_case import JudgedRun
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import LibraryRun, LibrarySide, Timer

from .reference_side import BaselineSide
from .timed_case import TimedCase, verify


@dataclass(frozen=True)
class _Relaid:
    """An output that the library lays out in its own way."""

    tensor: TensorSpec
    layout: str


def check_path(
    case: TimedCase, data: CaseData, side: LibrarySide
) -> BaselineSide | RejectedBaseline:
    """Run the path once under each poison and judge its outputs.

    A path with another scale layout is judged through a permutation; where that layout needs a
    larger buffer it cannot be run at all.

    Raises:
        InfraError: The device failed, not the library.
    """
    path = BaselinePath(name=side.baseline.name, pdl=side.pdl)
    relaid = _relaid(case, data, side)
    if relaid is not None and _size(relaid.tensor, case.workload, side.baseline.layout) != _size(
        relaid.tensor, case.workload, relaid.tensor.layout
    ):
        return rejection(path, "failed_check", _layout_difference(relaid) + ", of another size")
    differences = () if relaid is None else (_layout_difference(relaid),)
    name = f"{side.baseline.name}{' with PDL' if side.pdl else ''}"
    case.progress(
        f"checking the baseline {name}; at its first use its library is built, a minute or so"
    )
    stand_in = Program(
        Candidate("", side.baseline.name),
        case.problem,
        LaunchPlan(workload=case.workload.name, axes=case.workload.axes, defines={}, launches=()),
    )
    verified = verify(case, stand_in, _LibraryDevice(case, side, relaid))
    if not isinstance(verified, JudgedRun):
        return BaselineSide(path, side, differences)
    # What cannot be launched is not there; anything later is its own failure.
    unavailable = verified.status is Status.LAUNCH_ERROR
    reason = "; ".join((_reason(verified), *differences))
    return rejection(path, "unavailable" if unavailable else "failed_check", reason)


class _LibraryDevice:
    """A library's function where a device is expected, so that it is checked as a candidate is."""

    def __init__(self, case: TimedCase, side: LibrarySide, relaid: _Relaid | None) -> None:
        self._case = case
        self._timer: Timer = case.device
        self._side = side
        self._relaid = relaid

    @property
    def name(self) -> str:
        return self._case.device.name

    @property
    def gpu(self) -> GpuSpec | None:
        return self._case.gpu

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        del program
        return None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        case = self._case
        run = LibraryRun(case.problem, case.workload, self._side, request.inputs, request.poison)
        outcome = self._timer.run_library(run)
        if self._relaid is not None and outcome.status is Status.PASSED:
            tensor = self._relaid.tensor
            outcome.outputs[tensor.name] = _as_declared(
                outcome.outputs[tensor.name], tensor, case.workload
            )
        return outcome


def _relaid(case: TimedCase, data: CaseData, side: LibrarySide) -> _Relaid | None:
    scaled = [reference.scaled_by for reference in data.references.values()]
    for name in dict.fromkeys(entry.tensor for entry in scaled if entry is not None):
        tensor = case.problem.tensor(name)
        if tensor.layout != side.baseline.layout:
            return _Relaid(tensor, side.baseline.layout)
    return None


def _as_declared(
    array: npt.NDArray[Any], tensor: TensorSpec, workload: Workload
) -> npt.NDArray[Any]:
    """Return scales in the problem's layout from a buffer that holds the other one."""
    *batch, rows, columns = tensor_shape(tensor, workload.axes)
    offsets = sf_128x4_offsets(rows, columns)
    flat = array.reshape(prod(batch), rows * columns)
    if tensor.layout == "row_major":
        result = flat[:, offsets.reshape(-1)]
    else:
        result = flat.copy()
        result[:, offsets.reshape(-1)] = flat
    return result.reshape(storage_shape(tensor, workload.axes))


def _size(tensor: TensorSpec, workload: Workload, layout: str) -> int:
    laid_out = tensor.model_copy(update={"layout": layout})
    return prod(storage_shape(laid_out, workload.axes))


def _layout_difference(relaid: _Relaid) -> str:
    return (
        f"it lays {relaid.tensor.name} out as {relaid.layout}, the problem as "
        f"{relaid.tensor.layout}"
    )


def _reason(refused: JudgedRun) -> str:
    said = refused.diagnostics[0].message if refused.diagnostics else "no more is known"
    if refused.status is Status.UNWRITTEN_OUTPUT:
        return f"it returns without an error and leaves its output unwritten: {said}"
    return said if refused.status is Status.LAUNCH_ERROR else f"{refused.status}: {said}"


def rejection(
    path: BaselinePath, status: Literal["unavailable", "failed_check"], reason: str
) -> RejectedBaseline:
    """Return why `path` is no baseline."""
    return RejectedBaseline(name=path.name, pdl=path.pdl, status=status, reason=plain(reason))
