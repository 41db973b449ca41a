"""A failure of CUDA or of a library on its way to the answer: where it happened, what was said."""

from collections.abc import Generator
from contextlib import contextmanager

from kopt.tools.gpu.messages import Fault, Step

from .driver import CudaError

_RECOVERABLE = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "INVALID_VALUE",
        "OUT_OF_MEMORY",
        "STUB_LIBRARY",
        "INVALID_IMAGE",
        "NO_BINARY_FOR_GPU",
        "INVALID_PTX",
        "UNSUPPORTED_PTX_VERSION",
        "INVALID_SOURCE",
        "OPERATING_SYSTEM",
        "INVALID_HANDLE",
        "SHARED_OBJECT_SYMBOL_NOT_FOUND",
        "NOT_FOUND",
        "NOT_READY",
        "LAUNCH_OUT_OF_RESOURCES",
        "LAUNCH_INCOMPATIBLE_TEXTURING",
        "COOPERATIVE_LAUNCH_TOO_LARGE",
        "NOT_PERMITTED",
        "NOT_SUPPORTED",
        "STREAM_CAPTURE_UNSUPPORTED",
        "STREAM_CAPTURE_INVALIDATED",
        "STREAM_CAPTURE_MERGE",
        "STREAM_CAPTURE_UNMATCHED",
        "STREAM_CAPTURE_UNJOINED",
        "STREAM_CAPTURE_ISOLATION",
        "STREAM_CAPTURE_IMPLICIT",
        "STREAM_CAPTURE_WRONG_THREAD",
        "CAPTURED_EVENT",
        "GRAPH_EXEC_UPDATE_FAILURE",
        "INVALID_CLUSTER_SIZE",
        "FUNCTION_NOT_LOADED",
        "INVALID_RESOURCE_TYPE",
        "INVALID_RESOURCE_CONFIGURATION",
    )
)
"""What a call refuses without harm to the context; after anything else the context counts as lost.

Source: CUDA driver API, CUresult: errors that leave the process in an inconsistent state.
"""


class ExecutionFailure(Exception):
    """Ends an execution; `fault` becomes part of the answer."""

    def __init__(self, fault: Fault) -> None:
        """Keep `fault`."""
        super().__init__(f"{fault.during}: {fault.code}: {fault.message}")
        self.fault = fault
        self.side: int | None = None
        """Place of the side at fault in a timing session, where it is known."""


def as_fault(error: CudaError, during: Step, launch: int | None = None) -> Fault:
    """Return the fault of a failed driver call.

    An error that costs the context comes from work launched earlier, whichever call reports it.
    """
    sticky = error.code not in _RECOVERABLE
    if sticky and during in ("launch", "capture"):
        during, launch = "run", None
    return Fault(
        during=during, code=error.code, message=error.message, launch=launch, sticky=sticky
    )


@contextmanager
def step(during: Step, launch: int | None = None) -> Generator[None]:
    """Turn a `CudaError` of the block into an `ExecutionFailure` of this step."""
    try:
        yield
    except CudaError as error:
        raise ExecutionFailure(as_fault(error, during, launch)) from error
