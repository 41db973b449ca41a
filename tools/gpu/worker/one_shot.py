"""One launch plan in a process of its own: what Nsight Compute and compute-sanitizer run.

    python -P -m kopt.tools.gpu.worker.one_shot FOLDER

Every tensor and scratch buffer is an allocation of its own with its exact size, without guard zones
and poison, so that the driver's own bounds are the tensor's and outputs are uninitialized. It times
nothing, compares nothing and hands no values out: a timed or a checked run is the worker's.
"""

import sys
from pathlib import Path

import numpy as np

from kopt.config.files import write_atomically
from kopt.tools.gpu.array_file import read_arrays
from kopt.tools.gpu.messages import StartRequest
from kopt.tools.gpu.one_shot_files import (
    ANSWER_FILE,
    CUBIN_FILE,
    REQUEST_FILE,
    OneShotAnswer,
    OneShotBuffer,
    OneShotRequest,
)

from . import driver
from .buffer_layout import call_sizes
from .context import open_context
from .driver import Stream
from .failure import ExecutionFailure, step


def main(folder: Path) -> int:
    """Run the request in `folder`; a fault is part of the answer and no failure of this process."""
    request = OneShotRequest.model_validate_json((folder / REQUEST_FILE).read_bytes())
    answer = OneShotAnswer()
    try:
        with step("load"):
            context = open_context(StartRequest(device_uuid=request.device_uuid))
        with step("allocate"):
            buffers = _buffers(request, folder, context.stream)
        answer = OneShotAnswer(buffers=buffers)
        _write(folder, answer)
        loaded = context.plans.load(folder / CUBIN_FILE, request.plan, request.problem)
        call = loaded.bind({buffer.name: buffer.address for buffer in buffers})
        call()
        with step("run"):
            driver.synchronize_stream(context.stream)
        answer = answer.model_copy(update={"ended": True})
    except ExecutionFailure as failure:
        answer = answer.model_copy(update={"fault": failure.fault})
    _write(folder, answer)
    return 0


def _buffers(request: OneShotRequest, folder: Path, stream: Stream) -> tuple[OneShotBuffer, ...]:
    """Allocate every buffer and fill those that the caller of the kernel fills."""
    dtypes = {tensor.name: tensor.dtype for tensor in request.problem.tensors}
    inputs = read_arrays(folder, request.inputs, dtypes)
    buffers: list[OneShotBuffer] = []
    for name, size_bytes in call_sizes(request.problem, request.workload, request.plan):
        address = driver.allocate(size_bytes)
        if name in inputs:
            driver.copy_to_device(address, np.ascontiguousarray(inputs[name]), stream)
            driver.synchronize_stream(stream)
        buffers.append(OneShotBuffer(name=name, address=address, size_bytes=size_bytes))
    return tuple(buffers)


def _write(folder: Path, answer: OneShotAnswer) -> None:
    write_atomically(folder / ANSWER_FILE, answer.model_dump_json(), durable=False)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
