"""One execution in a worker: what is asked, and what its end means for candidate and worker."""

from dataclasses import dataclass

from kopt.config.errors import InfraError
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest
from kopt.tools.devices.timer import LibraryRun, Side

from .array_file import read_arrays
from .described_arrays import ArrayFile
from .faults import damage_outcome, fault_outcome, owns_memory, timeout_outcome
from .messages import ExecuteAnswer, ExecuteRequest, FaultAnswer
from .worker_process import WorkerEnd, WorkerProcess

ExecutionEnd = ExecuteAnswer | FaultAnswer | WorkerEnd


@dataclass(frozen=True)
class Execution:
    """One side, run once."""

    request: ExecutionRequest | LibraryRun
    problem: Problem
    workload: Workload
    side: Side


def execute_request(execution: Execution, inputs: ArrayFile) -> ExecuteRequest:
    """Return what a worker is asked; `inputs` lie in its folder."""
    asked = execution.request
    return ExecuteRequest(
        problem=execution.problem,
        workload=execution.workload,
        side=execution.side,
        inputs=inputs,
        poison=asked.poison,
        # A missing wait shows only where the kernel before it is still writing.
        late_producer=isinstance(asked, ExecutionRequest)
        and asked.late_inputs
        and asked.program.plan.launches[0].pdl,
        finds_leftovers=isinstance(asked, ExecutionRequest) and asked.finds_leftovers,
    )


def outcome_of_answer(
    execution: Execution, worker: WorkerProcess, answer: ExecutionEnd
) -> ExecutionOutcome:
    """Return the outcome of an execution.

    Raises:
        InfraError: The worker failed, not the candidate.
    """
    if isinstance(answer, WorkerEnd):
        if answer.reason == "died":
            raise InfraError(f"the GPU worker ended under an execution: {answer.detail}")
        return timeout_outcome(execution.request.timeout_s, worker.level)
    if isinstance(answer, FaultAnswer):
        owner = owns_memory(execution.side, execution.problem, execution.workload)
        return fault_outcome(answer.fault, worker.level, owner)
    if answer.damage:
        return damage_outcome(answer.damage, worker.level)
    written = [tensor for tensor in execution.problem.tensors if tensor.role != "in"]
    outputs = read_arrays(
        worker.folder, answer.outputs, {tensor.name: tensor.dtype for tensor in written}
    )
    missing = [tensor.name for tensor in written if tensor.name not in outputs]
    if missing:
        raise InfraError(f"the GPU worker gave no output {', '.join(missing)}")
    return ExecutionOutcome(Status.PASSED, outputs=outputs, sandbox=worker.level)


def may_pass_elsewhere(answer: ExecutionEnd) -> bool:
    """Return whether a fresh worker is asked the same once more, as no candidate need be at fault.

    A worker that died may have done so long before it was asked: device code alone cannot end its
    host process. And a kernel that its module lacks was found in the cubin when it was compiled: a
    driver said so of sound ones, once with six processes at one H200.
    """
    if isinstance(answer, FaultAnswer):
        return (answer.fault.during, answer.fault.code) == ("load", "CUDA_ERROR_NOT_FOUND")
    return isinstance(answer, WorkerEnd) and answer.reason == "died"


def hurts_worker(answer: ExecutionEnd) -> bool:
    """Return whether a worker must not serve another candidate after this answer.

    A stray write may have hit anything in the context. A library that says that it cannot run here
    has hurt nothing, and importing it again takes seconds.
    """
    if isinstance(answer, WorkerEnd):
        return True
    if isinstance(answer, FaultAnswer):
        return answer.fault.sticky or answer.fault.during != "library"
    return any(entry.where != "inside" for entry in answer.damage)
