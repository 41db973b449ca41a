"""Receipts by their places: files, and folders with all below them. Each receipt comes once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.receipt import Receipt

from .receipt_file import WHAT_IT_IS, read_receipt

SUFFIX = ".receipt.json"


@dataclass(frozen=True)
class FoundReceipt:
    """A receipt with its files, or a file that holds none that can be used."""

    files: tuple[str, ...]
    receipt: Receipt | None
    error: str | None = None
    """Why there is no receipt."""


def find_receipts(places: Sequence[Path]) -> tuple[FoundReceipt, ...]:
    """Return the receipts in the order of their first file; equal digests are one receipt.

    A file that cannot be used is an entry with its reason, so that the others are verified.

    Raises:
        ToolError: A place is a kernel's source, or a folder without receipts.
    """
    found: dict[str, FoundReceipt] = {}
    for path in dict.fromkeys(path for place in places for path in _files_at(place)):
        try:
            receipt = read_receipt(path)
        except ToolError as error:
            found[f"file {path}"] = FoundReceipt((str(path),), None, str(error))
            continue
        known = found.get(receipt.digest)
        files = () if known is None else known.files
        found[receipt.digest] = FoundReceipt((*files, str(path)), receipt)
    return tuple(found.values())


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
        found = tuple(sorted(folder.glob(f"{workload.name}.sm_*{SUFFIX}")))
        if found:
            return found
    raise ToolError(f"{kernel} has no winner yet; {WHAT_IT_IS}")


def refuse_source(path: Path) -> None:
    """Refuse a kernel's source where its receipt is meant.

    Raises:
        ToolError: The message names the receipt.
    """
    if path.suffix == ".cu":
        raise ToolError(f"{path} is a source; name its receipt: {path.with_suffix(SUFFIX)}")


def _files_at(place: Path) -> Iterator[Path]:
    refuse_source(place)
    if not place.is_dir():
        yield place
        return
    below = sorted(place.rglob(f"*{SUFFIX}"))
    if not below:
        raise ToolError(f"no receipt lies below {place}; {WHAT_IT_IS}")
    yield from below
