"""Several receipts: found by their places, joined by promotion, verified one after the other.

Each is verified in worker processes of its own and told of at once. A receipt that cannot be used
is an entry with its reason; the others are verified all the same.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.config.time_left import TimeLeft
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.receipt import Receipt
from kopt.kernels.shipped_kernels import EVIDENCE, evidence_of, kernels_in
from kopt.kernels.status import Status
from kopt.kernels.verify_result import VerifiedReceipt, VerifyListResult

from .receipt_file import WHAT_IT_IS, read_receipt
from .receipt_parts import joined
from .repeated_timing import OpenDevice
from .reproduction import VerifyRequest, problem_of, verify_receipt

SUFFIX = EVIDENCE["winner"]


@dataclass(frozen=True)
class FoundReceipt:
    """A receipt with its files, or a file that holds none that can be used."""

    files: tuple[str, ...]
    receipt: Receipt | None
    error: str | None = None
    """Why there is no receipt."""


def find_receipts(places: Sequence[Path]) -> tuple[FoundReceipt, ...]:
    """Return the receipts in the order of their first file; those of one promotion are joined.

    A file that cannot be used is an entry with its reason, so that the others are verified.

    Raises:
        ToolError: A place is a kernel's source, or a folder without receipts.
    """
    read: dict[str, dict[str, Receipt]] = {}
    unusable: dict[str, FoundReceipt] = {}
    for path in dict.fromkeys(path for place in places for path in _files_at(place)):
        try:
            receipt = read_receipt(path)
        except ToolError as error:
            read[f"file {path}"] = {}
            unusable[f"file {path}"] = FoundReceipt((str(path),), None, str(error))
        else:
            read.setdefault(receipt.promotion or receipt.digest, {})[str(path)] = receipt
    return tuple(unusable.get(key) or _joined(files) for key, files in read.items())


def _joined(files: dict[str, Receipt]) -> FoundReceipt:
    distinct = {receipt.digest: receipt for receipt in files.values()}
    try:
        return FoundReceipt(tuple(files), joined(list(distinct.values())))
    except ToolError as error:
        return FoundReceipt(tuple(files), None, str(error))


def places_of(words: Sequence[Path], settings: Settings) -> tuple[Path, ...]:
    """Return the paths as they are, and for each kernel id the receipts of its winners.

    Raises:
        ToolError: A kernel id without a winner, or a word that is neither path nor kernel id.
    """
    return tuple(path for word in words for path in _places(word, settings))


def _places(word: Path, settings: Settings) -> tuple[Path, ...]:
    if word.exists() or word.suffix or len(word.parts) > 1:
        return (word,)
    problems = load_problems(settings.problems).values()
    if any(str(word) in problem.kernel_ids for problem in problems):
        return _of_kernel(str(word), settings)
    raise ToolError(f"{word} is no file and no kernel id (kopt list)")


def _of_kernel(kernel: str, settings: Settings) -> tuple[Path, ...]:
    """Return the winners that come with the problem, else those of this machine."""
    problem, workload = find_kernel(kernel, settings.problems)
    for folder in (problem.folder / "winners", settings.winners / problem.name):
        receipts = (one.evidence for one in kernels_in(folder, workload))
        found = tuple(path for path in receipts if path.is_file())
        if found:
            return found
    raise ToolError(f"{kernel} has no winner yet; {WHAT_IT_IS}")


def refuse_source(path: Path) -> None:
    """Refuse a kernel's source where its receipt is meant.

    Raises:
        ToolError: The message names the receipt.
    """
    if path.suffix == ".cu":
        if receipts := " ".join(map(str, evidence_of(path))):
            raise ToolError(f"{path} is a source; name its receipt: {receipts}")
        raise ToolError(
            f"{path} is a source, and no receipt lies beside it: kopt bench {path} --promote"
            " measures one on a GPU"
        )


def _files_at(place: Path) -> Iterator[Path]:
    refuse_source(place)
    if not place.is_dir():
        yield place
        return
    below = sorted(_below(place))
    if not below:
        raise ToolError(f"no receipt lies below {place}; {WHAT_IT_IS}")
    yield from below


def _below(folder: Path) -> Iterator[Path]:
    """Yield the receipts below `folder`; hidden folders hold copies, caches and checkouts."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if name.endswith(SUFFIX))


@dataclass(frozen=True)
class VerifyAllRequest:
    """What is verified."""

    receipts: Sequence[FoundReceipt]
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""
    on_result: Callable[[VerifyListResult], None] = ignore
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
    pace = TimeLeft(planned)
    for number, found in enumerate(request.receipts, start=1):
        progress = pace.piece(number, lambda line: request.progress(f"receipt {line}"))
        entry = _verified(found, progress, open_device, settings)
        results = (*result.results, entry)
        statuses = (one.result.status for one in results if one.result is not None)
        update = {
            "status": next((one for one in statuses if one is not Status.PASSED), Status.PASSED),
            "results": results,
            "elapsed_s": perf_counter() - start,
        }
        result = result.model_copy(update=update)
        request.on_result(result)
    return result


def _verified(
    found: FoundReceipt,
    progress: Callable[[str], None],
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
