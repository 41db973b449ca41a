"""A GPU on which every candidate gives right outputs, whatever it does: the oracle's."""

from dataclasses import dataclass

import numpy as np

from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import storage_shape
from kopt.kernels.status import Status
from kopt.tools.check.reference import make_reference
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program


@dataclass
class BlindGpu:
    """Implements `tools.devices.device.Device`; counts its executions."""

    executions: int = 0
    name: str = "cuda:0"

    @property
    def gpu(self) -> GpuSpec:
        """The H100's data sheet."""
        return load_gpus()["H100"]

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Have nothing to build."""
        del program
        return None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Return what the oracle says, over the request's poison."""
        self.executions += 1
        problem, axes = request.program.problem, request.program.plan.axes
        scalars = {scalar.name: scalar.value for scalar in problem.scalars}
        expected = load_oracle(problem).expected(_counting(request.inputs), scalars)
        outputs: Arrays = {}
        for name, entry in expected.items():
            spec = problem.tensor(name)
            given = request.inputs.get(name)
            shape, dtype = storage_shape(spec, axes), numpy_dtype(spec.dtype)
            array = np.full(shape, request.poison, np.uint8) if given is None else given.copy()
            if given is None:
                size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                array = np.full(size, request.poison, np.uint8).view(dtype).reshape(shape)
            reference = make_reference(problem, name, entry)
            bits = array.reshape(-1).view(reference.bits.dtype)
            written = slice(None) if reference.written is None else reference.written.reshape(-1)
            bits[written] = reference.bits.reshape(-1)[written]
            outputs[name] = array
        return ExecutionOutcome(Status.PASSED, outputs=outputs, sandbox="plain")


def _counting(inputs: Arrays) -> Arrays:
    """Return the inputs with 0 for what of bfloat16 is no number: it counts for nothing."""
    return {
        name: np.where(array & 0x7F80 == 0x7F80, 0, array).astype(np.uint16)
        if array.dtype == np.uint16
        else array
        for name, array in inputs.items()
    }
