"""Running a few lines of CUDA on the simulator, without a problem folder or a header comment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.plan import Argument, Dim3, Launch, LaunchPlan, Scratch, TensorMap
from kopt.kernels.problem import Problem, Role, TensorSpec, Workload
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.sim.device import SimDevice

Array = npt.NDArray[Any]
POISON = 0xA5

_DTYPE_NAMES = {
    np.dtype(ml_dtypes.bfloat16): "bfloat16",
    np.dtype(ml_dtypes.float8_e4m3fn): "float8_e4m3fn",
}


@dataclass(frozen=True)
class SimCase:
    """A source with one kernel `k` (or explicit launches) and its buffers.

    Without `launches`, `k` is called once with the inputs, the outputs, the scratch buffers, the
    tensor maps and then `scalars`, in the order of their declaration.
    """

    source: str
    inputs: Mapping[str, Array] = field(default_factory=dict[str, Array])
    outputs: Mapping[str, Array] = field(default_factory=dict[str, Array])
    """Arrays that give shape and dtype; their values are used only for names in `inout`."""
    inout: frozenset[str] = frozenset()
    static: frozenset[str] = frozenset()
    """Inputs that no earlier kernel writes."""
    scratch: tuple[Scratch, ...] = ()
    tensor_maps: tuple[TensorMap, ...] = ()
    scalars: tuple[Argument, ...] = ()
    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (32, 1, 1)
    cluster: Dim3 = (1, 1, 1)
    smem: int = 0
    cooperative: bool = False
    pdl: bool = False
    launches: tuple[Launch, ...] = ()
    defines: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def program(self) -> Program:
        """The program that the device is given."""
        tensors = [_tensor(name, array, "in") for name, array in self.inputs.items()]
        tensors += [
            _tensor(name, array, "inout" if name in self.inout else "out")
            for name, array in self.outputs.items()
        ]
        tensors = [
            tensor.model_copy(update={"static": tensor.name in self.static}) for tensor in tensors
        ]
        arrays = {**self.inputs, **self.outputs}
        axes = {
            f"{name}_{number}": extent
            for name, array in arrays.items()
            for number, extent in enumerate(array.shape)
        }
        problem = Problem(
            name="unit",
            op_type="unit",
            description="",
            axes=dict.fromkeys(axes),
            tensors=tuple(tensors),
            row_axis=next(iter(axes), ""),
            workloads=(Workload(name="w", axes=axes),),
            tolerance="bf16",
            folder=Path(),
        )
        plan = LaunchPlan(
            workload="w",
            axes=axes,
            defines=dict(self.defines),
            launches=self.launches or (self._launch(),),
            scratch=self.scratch,
            tensor_maps=self.tensor_maps,
        )
        return Program(Candidate(self.source), problem, plan)

    def _launch(self) -> Launch:
        arguments = [Argument(kind="tensor", name=n) for n in (*self.inputs, *self.outputs)]
        arguments += [Argument(kind="scratch", name=s.name) for s in self.scratch]
        arguments += [Argument(kind="tensor_map", name=m.name) for m in self.tensor_maps]
        return Launch(
            kernel="k",
            grid=self.grid,
            block=self.block,
            cluster=self.cluster,
            dynamic_smem_bytes=self.smem,
            cooperative=self.cooperative,
            pdl=self.pdl,
            arguments=(*arguments, *self.scalars),
        )


@dataclass(frozen=True)
class Sim:
    """The simulator under test, with the knobs that tests turn."""

    settings: Settings
    workers: int = 2
    seed: int = 0
    poison: int = POISON
    timeout_s: float = 20.0

    def with_(self, **changes: Any) -> "Sim":
        """Return the same simulator with other knobs."""
        return replace(self, **changes)

    def execute(self, case: SimCase) -> ExecutionOutcome:
        """Run `case` and return how it ended."""
        inputs = {**case.inputs, **{name: case.outputs[name] for name in case.inout}}
        request = ExecutionRequest(
            case.program, inputs, self.poison, schedule_seed=self.seed, timeout_s=self.timeout_s
        )
        return SimDevice(self.settings, self.workers).execute(request)

    def outputs(self, case: SimCase) -> dict[str, Array]:
        """Run `case`, which must pass, and return its outputs."""
        outcome = self.execute(case)
        assert outcome.status is Status.PASSED, outcome.diagnostics
        return outcome.outputs

    def fault(self, case: SimCase, status: Status) -> Diagnostic:
        """Run `case`, which must end with `status`, and return its diagnostic."""
        outcome = self.execute(case)
        assert outcome.status is status, (outcome.status, outcome.diagnostics)
        return outcome.diagnostics[0]


def int32(name: str, value: int) -> Argument:
    """Return an int32 argument."""
    return Argument(kind="int32", name=name, value=value)


def line_of(source: str, text: str) -> int:
    """Return the 1-based line of `source` that holds `text`."""
    found = [number for number, line in enumerate(source.splitlines(), 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def _tensor(name: str, array: Array, role: Role) -> TensorSpec:
    dtype = _DTYPE_NAMES.get(array.dtype, str(array.dtype))
    shape = tuple(f"{name}_{number}" for number in range(array.ndim))
    return TensorSpec(name=name, role=role, dtype=dtype, shape=shape)
