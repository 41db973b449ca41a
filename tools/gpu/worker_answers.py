"""A question to a worker, with an answer of the kind that belongs to it."""

from typing import TypeVar

from kopt.config.errors import InfraError

from .messages import Failed, Request
from .worker_process import WorkerEnd, WorkerProcess

Expected = TypeVar("Expected")


def ask_for(
    kind: type[Expected], worker: WorkerProcess, request: Request, timeout_s: float
) -> Expected | WorkerEnd:
    """Return the answer to `request`, or how the worker ended instead.

    Raises:
        InfraError: The worker itself failed, or answered something else.
    """
    answer = worker.ask(request, timeout_s)
    if isinstance(answer, kind | WorkerEnd):
        return answer
    if isinstance(answer, Failed):
        raise InfraError(f"the GPU worker failed: {answer.message}")
    raise InfraError(f"the GPU worker answered {answer.kind} to {request.kind}")
