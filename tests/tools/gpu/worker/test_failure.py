"""What a failed driver call becomes, and which errors cost the worker its context."""

import pytest

from kopt.tools.gpu.messages import Fault, Step
from kopt.tools.gpu.worker.driver import CudaError
from kopt.tools.gpu.worker.failure import ExecutionFailure, as_fault, step


@pytest.mark.parametrize(
    "code",
    [
        "ILLEGAL_ADDRESS",
        "MISALIGNED_ADDRESS",
        "LAUNCH_FAILED",
        "ILLEGAL_INSTRUCTION",
        "ASSERT",
        "ECC_UNCORRECTABLE",
        "A_CODE_OF_A_LATER_CUDA",
    ],
)
def test_an_error_not_known_to_be_harmless_costs_the_context(code: str) -> None:
    assert as_fault(CudaError(f"CUDA_ERROR_{code}", "words"), "run").sticky


@pytest.mark.parametrize(
    ("code", "during"),
    [
        ("INVALID_VALUE", "launch"),
        ("LAUNCH_OUT_OF_RESOURCES", "launch"),
        ("COOPERATIVE_LAUNCH_TOO_LARGE", "launch"),
        ("INVALID_CLUSTER_SIZE", "launch"),
        ("OUT_OF_MEMORY", "allocate"),
        ("NO_BINARY_FOR_GPU", "load"),
        ("NOT_FOUND", "load"),
        ("STREAM_CAPTURE_UNSUPPORTED", "capture"),
    ],
)
def test_a_refused_call_leaves_the_context_alone(code: str, during: Step) -> None:
    fault = as_fault(CudaError(f"CUDA_ERROR_{code}", "words"), during, 1)
    assert fault == Fault(
        during=during, code=f"CUDA_ERROR_{code}", message="words", launch=1, sticky=False
    )


def test_a_launch_that_reports_earlier_work_is_not_blamed_for_it() -> None:
    fault = as_fault(CudaError("CUDA_ERROR_ILLEGAL_ADDRESS", "words"), "launch", 1)
    assert (fault.during, fault.launch, fault.sticky) == ("run", None, True)


def test_a_step_turns_errors_of_the_driver_into_failures() -> None:
    with pytest.raises(ExecutionFailure) as caught, step("encode"):
        raise CudaError("CUDA_ERROR_INVALID_VALUE", "invalid argument")
    assert caught.value.fault.during == "encode"
    assert caught.value.fault.message == "invalid argument"


def test_a_step_leaves_other_errors_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), step("run"):
        _ = 1 // 0
