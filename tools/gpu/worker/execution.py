"""One checked execution in the worker: fill, poison, call once, look for damage, give outputs back.

The worker never holds expected outputs; whether the values are right is judged elsewhere.
"""

import secrets
from contextlib import ExitStack
from pathlib import Path

from kopt.tools.devices.device import Arrays
from kopt.tools.gpu.array_file import MappedFile, overwrite_arrays
from kopt.tools.gpu.messages import BufferDamage, ExecuteAnswer, ExecuteRequest

from . import driver
from .buffers import LATE_PREFIX, CallBuffers, CallData
from .context import WorkerContext
from .driver import Stream
from .failure import Failure, step
from .late_producer import LateCopy, LateProducer, late_inputs
from .launcher import BoundPlan
from .sides import Call, CallBinding, bind_side, side_plan

_OUTPUT_FILE = "outputs"


def execute(request: ExecuteRequest, folder: Path, worker: WorkerContext) -> ExecuteAnswer:
    """Run the side of `request` once; what CUDA or the library says against it is in the answer.

    Raises:
        InfraError: The inputs cannot be read, or do not fit their tensors.
        OSError: The outputs cannot be written.
    """
    dtypes = {tensor.name: tensor.dtype for tensor in request.problem.tensors}
    inputs = MappedFile(folder, request.inputs).arrays(dtypes)
    with ExitStack() as stack:
        try:
            outputs, damage = _execute(request, inputs, worker, stack)
        except Failure as failure:
            return ExecuteAnswer(fault=failure.fault)
        # Their reader has copied those of the execution before.
        written = overwrite_arrays(folder, _OUTPUT_FILE, outputs.items())
    return ExecuteAnswer(damage=damage, outputs=written)


def _execute(
    request: ExecuteRequest, inputs: Arrays, worker: WorkerContext, resources: ExitStack
) -> tuple[Arrays, tuple[BufferDamage, ...]]:
    """Return outputs that stand until `resources` close, and damage."""
    data = CallData(
        problem=request.problem,
        workload=request.workload,
        plan=side_plan(request.side),
        inputs=inputs,
        poison=request.poison,
        late=late_inputs(request.problem) if request.late_producer else (),
    )
    with step("allocate"):
        buffers = CallBuffers(data, worker.arena, worker.pinned, secrets.randbits(64))
    resources.callback(buffers.close)
    binding = CallBinding(request.problem, request.workload, buffers.addresses)
    call = bind_side(request.side, binding, worker)
    if request.late_producer:
        call = _behind_late_producer(call, data, buffers, worker)
    with step("allocate"):
        buffers.upload(worker.stream)
    _run(call, worker.stream)
    with step("run"):
        return buffers.read_back(worker.stream)


def _run(call: Call, stream: Stream) -> None:
    try:
        call()
    except Failure:
        # What was launched before may itself fail; the next execution must not be blamed for it.
        with step("run"):
            driver.synchronize_stream(stream)
        raise
    with step("run"):
        driver.synchronize_stream(stream)


def _behind_late_producer(
    call: Call, data: CallData, buffers: CallBuffers, worker: WorkerContext
) -> Call:
    producer = LateProducer(worker.helper_cubin("late_producer"), worker.stream)
    copies = [
        LateCopy(
            source=buffers.addresses[f"{LATE_PREFIX}{name}"],
            target=buffers.addresses[name],
            size_bytes=data.inputs[name].nbytes,
        )
        for name in data.late
    ]

    def call_behind() -> None:
        # A fill between the two kernels would make the second wait for the first to end.
        if isinstance(call, BoundPlan):
            call.zero_scratch()
            producer.launch(copies)
            call.launch_kernels()
        else:
            producer.launch(copies)
            call()

    return call_behind
