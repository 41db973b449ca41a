"""Outcomes of executions as messages, and back."""

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import storage_shape
from kopt.kernels.status import Status
from kopt.tools.devices.device import Arrays, ExecutionOutcome, Program

from .answers import OutcomeAnswer


def answer_of(outcome: ExecutionOutcome) -> OutcomeAnswer:
    """Return an outcome as a message; its outputs go beside it."""
    return OutcomeAnswer(
        status=outcome.status,
        diagnostics=outcome.diagnostics,
        counters=outcome.counters,
        sandbox=outcome.sandbox,
        cpu_bodies=outcome.cpu_bodies,
        access_lines=dict(outcome.access_lines),
        elapsed_s=outcome.elapsed_s,
    )


def outcome_of(answer: OutcomeAnswer, outputs: Arrays | None = None) -> ExecutionOutcome:
    """Return the outcome that a message tells, with the outputs beside it."""
    return ExecutionOutcome(
        status=answer.status,
        diagnostics=answer.diagnostics,
        outputs=outputs or {},
        counters=answer.counters,
        sandbox=answer.sandbox,
        cpu_bodies=answer.cpu_bodies,
        access_lines=answer.access_lines,
        elapsed_s=answer.elapsed_s,
    )


def refuse_other_outputs(program: Program, outcome: ExecutionOutcome) -> None:
    """Refuse outputs of another form than the problem's.

    Raises:
        InfraError: A name, a dtype or a shape differs.
    """
    wanted = {
        tensor.name: (numpy_dtype(tensor.dtype), storage_shape(tensor, program.plan.axes))
        for tensor in program.problem.tensors
        if tensor.role != "in"
    }
    got = {name: (array.dtype, array.shape) for name, array in outcome.outputs.items()}
    if outcome.status is Status.PASSED and got != wanted:
        raise InfraError(f"the other machine gave outputs {got}, not {wanted}")
