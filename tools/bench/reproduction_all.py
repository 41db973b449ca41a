"""Several receipts, one after the other: each in worker processes of its own, each told of at once.

A receipt that cannot be verified is an entry with its reason; the others are verified all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.kernels.verify_result import VerifiedReceipt, VerifyListResult

from .receipt_search import FoundReceipt
from .repeated_timing import OpenDevice
from .reproduction import VerifyRequest, problem_of, verify_receipt


@dataclass(frozen=True)
class VerifyAllRequest:
    """What is verified."""

    receipts: Sequence[FoundReceipt]
    progress: Callable[[str], None] | None = None
    """Called with a short line before each step."""
    on_result: Callable[[VerifyListResult], None] | None = None
    """Called after each receipt with all results so far."""


def verify_all(
    request: VerifyAllRequest, open_device: OpenDevice, settings: Settings
) -> VerifyListResult:
    """Return which of the receipts reproduce here.

    Raises:
        SetupError: No compiler, or KOPT_HOME cannot be written.
    """
    start = perf_counter()
    planned = len(request.receipts)
    result = VerifyListResult(status=Status.PASSED, planned=planned, results=(), elapsed_s=0.0)
    for number, found in enumerate(request.receipts, start=1):
        entry = _verified(
            found, _numbered(request, f"{number} of {planned}"), open_device, settings
        )
        results = (*result.results, entry)
        statuses = (one.result.status for one in results if one.result is not None)
        update = {
            "status": next((one for one in statuses if one is not Status.PASSED), Status.PASSED),
            "results": results,
            "elapsed_s": perf_counter() - start,
        }
        result = result.model_copy(update=update)
        if request.on_result is not None:
            request.on_result(result)
    return result


def _numbered(request: VerifyAllRequest, number: str) -> Callable[[str], None] | None:
    tell = request.progress
    return None if tell is None else lambda line: tell(f"receipt {number}: {line}")


def _verified(
    found: FoundReceipt,
    progress: Callable[[str], None] | None,
    open_device: OpenDevice,
    settings: Settings,
) -> VerifiedReceipt:
    entry = VerifiedReceipt(files=found.files)
    if found.receipt is None:
        return entry.model_copy(update={"fault": "usage", "error": found.error})
    try:
        asked = VerifyRequest(found.receipt, problem_of(found.receipt, settings), progress)
        result = verify_receipt(asked, open_device, settings)
    except ToolError as error:
        return entry.model_copy(update={"fault": "usage", "error": str(error)})
    except InfraError as error:
        return entry.model_copy(update={"fault": "machine", "error": str(error)})
    return entry.model_copy(update={"result": result})
